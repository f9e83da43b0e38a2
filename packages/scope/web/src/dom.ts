// Elements, units, colors: what all views draw with. Text is always set as text, never as markup.

type Child = Node | string | null | undefined | false;
const isPresent = (value: unknown): boolean => value !== null && value !== undefined && value !== false;

export function el(name: string, attributes: Record<string, any> = {}, ...children: Child[]): HTMLElement {
  const found = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) found.addEventListener(key.slice(2), value);
    else if (isPresent(value)) found.setAttribute(key, value === true ? "" : String(value));
  }
  found.append(...children.filter((c): c is Node | string => isPresent(c)));
  return found;
}

export const table = (head: string[], rows: (Child | number)[][], caption?: string): HTMLElement =>
  el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption ?? head.join(", ") },
    el("table", {}, caption ? el("caption", {}, caption) : null,
      el("thead", {}, el("tr", {}, ...head.map((h) => el("th", { scope: "col" }, h)))),
      el("tbody", {}, ...rows.map((r) => el("tr", {}, ...r.map(cell))))));
const cell = (value: Child | number): HTMLElement =>
  typeof value === "number" ? el("td", { class: "n" }, String(value)) : el("td", {}, value);

export const time = (ns: number): string =>
  !ns ? "0 ns"
  : ns >= 1e6 ? `${(ns / 1e6).toFixed(2)} ms`
  : ns >= 1e3 ? `${(ns / 1e3).toFixed(2)} µs`
  : `${ns.toFixed(ns < 10 ? 1 : 0)} ns`;
export const bytes = (n: number): string =>
  n >= 1 << 20 ? `${(n / (1 << 20)).toFixed(1)} MiB` : n >= 1024 ? `${(n / 1024).toFixed(1)} KiB` : `${n} B`;
/** A number with its noun, which gets an s unless it is one. */
export const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`;
export const percent = (share: number): string => `${(100 * share).toFixed(1)}%`;

const COLORS: Record<string, string> = {
  tensor: "#4e79a7", vector: "#f28e2b", scalar: "#59a14f", gpsimd: "#b07aa1", sync: "#9c755f", dma: "#76b7b2",
};
export const laneColor = (names: string[], lane: number): string => COLORS[names[lane] ?? "dma"]!;

export interface Theme { ink: string; soft: string; grid: string; back: string; accent: string; heat: string }
export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(`--${name}`).trim();
  const [ink, soft, grid, back, accent, heat] = ["ink", "soft", "grid", "back", "accent", "heat"].map(get);
  return { ink, soft, grid, back, accent, heat } as Theme;
}

/** A canvas as wide as its parent and `height` high, in CSS pixels; `draw` runs in the frame after a request. */
export class Picture {
  readonly canvas: HTMLCanvasElement;
  private due = false;
  private static readonly all = new WeakMap<HTMLCanvasElement, Picture>();
  static of(canvas: HTMLCanvasElement): Picture { return Picture.all.get(canvas)!; }
  constructor(readonly height: () => number,
    readonly draw: (c: CanvasRenderingContext2D, width: number, height: number) => void, label: string) {
    this.canvas = el("canvas", { role: "img", "aria-label": label, tabindex: 0 }) as HTMLCanvasElement;
    Picture.all.set(this.canvas, this);
    new ResizeObserver(() => this.request()).observe(this.canvas);
  }
  /** Draws every picture again: in the colors of paper, or where those of the screen have changed. */
  static redraw(): void {
    for (const canvas of document.querySelectorAll("canvas")) Picture.of(canvas).now();
  }
  get width(): number { return this.canvas.clientWidth || 800; }
  request(): void {
    if (this.due) return;
    this.due = true;
    requestAnimationFrame(() => { this.due = false; this.now(); });
  }
  now(): void {
    const ratio = devicePixelRatio || 1, width = this.width, height = this.height();
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== w) this.canvas.width = w;
    if (this.canvas.height !== h) this.canvas.height = h;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d")!;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    this.draw(context, width, height);
  }
}

/** The least of 1, 2, 5, 10, 20, … that is not below `least`. */
export function roundStep(least: number): number {
  const unit = 10 ** Math.floor(Math.log10(Math.max(least, 1e-9)));
  return [1, 2, 5, 10].map((f) => f * unit).find((s) => s >= least) ?? 10 * unit;
}

/** Lines and times of an axis of `ns` nanoseconds from `left` to `right`, the times below `bottom`. */
export function timeAxis(c: CanvasRenderingContext2D, ns: number, left: number, right: number, top: number,
  bottom: number): void {
  const t = theme(), step = roundStep(ns / ((right - left) / 130));
  c.strokeStyle = t.grid; c.fillStyle = t.soft; c.textAlign = "center";
  for (let n = 0; n * step <= ns; n++) {
    const x = Math.round(left + ((n * step) / ns) * (right - left)) + 0.5;
    c.beginPath(); c.moveTo(x, top); c.lineTo(x, bottom); c.stroke();
    if (x < right - 24) c.fillText(time(n * step), Math.max(x, left + 14), bottom + 14);
  }
}
