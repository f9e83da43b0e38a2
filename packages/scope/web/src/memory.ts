// SBUF and PSUM over time: every buffer as a rectangle of its life and bytes, what is held and what
// is free between, the buffers of any moment (the peak first), how long each one lives.
import type { Buffer, Column, Kernel, Memory } from "./data.ts";
import { Picture, bytes, count, el, percent, table, theme, time, timeAxis } from "./dom.ts";
import type { Selection } from "./model.ts";

const LEFT = 76, TOP = 20, BOTTOM = 20, HEIGHT = 280, HELD_HEIGHT = 130, MOST_RECTS = 20000, MOST_ROWS = 20;
const COLORS = [
  "#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#ff9da7", "#9c755f", "#e15759", "#86bcb6",
];

export function memory(selection: Selection): HTMLElement {
  const spaces = Object.entries(selection.now.memory).map(([name, m]) => new Space(selection, name.toUpperCase(), m));
  selection.follow(() => spaces.forEach((space) => space.follow()));
  return el("div", {}, ...spaces.map((space) => space.root));
}

/** What is held from a moment on, in bytes of a partition. */
interface Moment { at: number; held: number; reach: number }

class Space {
  readonly root: HTMLElement;
  private readonly whole: number;
  private readonly lives: number[];
  private readonly moments: Moment[];
  private readonly extent: number;
  private readonly peak: number;
  private now: number;
  private readonly kernel: Kernel;
  private readonly pictures: Picture[];
  private readonly details = el("p", { class: "details", "aria-live": "polite" });
  private readonly present = el("div", {});

  constructor(private readonly selection: Selection, private readonly name: string,
    private readonly m: Memory<Column>) {
    const kernel = this.kernel = selection.now;
    this.whole = Math.max(1, kernel.totalNs * kernel.perNs);
    this.lives = Array.from(m.lives.start.keys());
    this.moments = this.sweep();
    this.extent = this.moments.reduce((most, { held, reach }) => Math.max(most, held, reach), m.unit);
    const best = this.moments.reduce((best, { held }, i) => held > this.moments[best]!.held ? i : best, 0);
    this.peak = this.now = this.moments[best]?.at ?? 0;
    const most = Array.from(m.held).reduce((a, b) => Math.max(a, b), 0);
    const limit = m.bytes / m.unit, unit = m.unit === 1 ? "bytes per partition" : "banks";
    this.pictures = [
      new Picture(() => HEIGHT, (c, w) => this.drawLives(c, w),
        `Buffers of ${name} over time, by address: at most ${most} ${unit}. Arrow keys move the moment.`),
      new Picture(() => HELD_HEIGHT, (c, w) => this.drawHeld(c, w),
        `${name} held over time, and what is free between the buffers`),
    ];
    if (!most) {
      this.root = el("section", {}, el("h3", {}, name),
        el("p", { class: "soft" }, `The kernel has no buffer in ${name}.`));
      return;
    }
    for (const { canvas } of this.pictures) {
      canvas.addEventListener("click", (e) => this.click(e));
      canvas.addEventListener("keydown", (e) => this.key(e));
    }
    const peak = `At most ${most} of ${limit} ${unit} (${percent(most / limit)}), at ${this.time(this.peak)}. `;
    const wait = "That is more than the target has: instructions of the model do not wait for room. ";
    const over = most > limit ? wait : "";
    const key = (color: string, text: string) => el("span", { class: "key", style: `--key: ${color}` }, text);
    this.root = el("section", {}, el("h3", {}, name), el("p", {}, peak, over, this.leftOut()),
      this.lives.length ? this.pictures[0]!.canvas : null,
      el("p", { class: "soft" }, key("#4e79a7", "held"),
        key("#e1575999", "free between the buffers, below the highest one (fragmentation)")),
      this.pictures[1]!.canvas, this.details, this.present, this.lifetimes());
    if (selection.bar < 0) this.show(this.peak); else this.follow();
  }

  private leftOut(): string {
    const number = this.lives.length;
    if (!number) return "Lives of buffers are left out: not every iteration was played.";
    return number > MOST_RECTS ? `The first ${MOST_RECTS} of ${number} lives are drawn.` : "";
  }
  /** Shows the moment at which the selected instruction starts. */
  follow(): void {
    const { bar } = this.selection;
    if (bar >= 0) this.show(this.kernel.bars.start[bar]!);
  }
  /** The instruction that a buffer's life begins with. */
  private first(life: number): number {
    const { start, call } = this.kernel.bars, at = this.m.lives.start[life]!, { name } = this.buffer(life);
    const accesses = (bar: number) => Object.values(this.kernel.calls[call[bar]!]!.operands)
      .some((text) => text.startsWith(`${name} `));
    return start.findIndex((tick, bar) => tick === at && accesses(bar));
  }

  private time(tick: number): string { return time(tick / this.kernel.perNs); }
  private buffer(life: number): Buffer { return this.m.buffers[this.m.lives.buffer[life]!]!; }
  private size(life: number): number { return this.buffer(life).bytes; }
  private x(tick: number, width: number): number { return LEFT + (tick / this.whole) * (width - LEFT - 8); }
  private y(byte: number, height: number): number {
    return height - BOTTOM - (byte / this.extent) * (height - TOP - BOTTOM);
  }
  /** The rectangle of a life in a picture `w` wide. */
  private box(life: number, w: number): Record<"left" | "right" | "top" | "low", number> {
    const { start, end, address } = this.m.lives, low = address[life]!;
    return { left: this.x(start[life]!, w), right: this.x(end[life]!, w), top: this.y(low + this.size(life), HEIGHT),
      low: this.y(low, HEIGHT) };
  }
  private covers({ left, right, top, low }: ReturnType<Space["box"]>, x: number, y: number): boolean {
    return left - 1 <= x && x <= right + 1 && top <= y && y <= low;
  }
  private presentAt(tick: number): number[] {
    return this.lives.filter((i) => this.m.lives.start[i]! <= tick && tick < this.m.lives.end[i]!);
  }

  /** Every change of what is held: without lives, as the timeline counts it. */
  private sweep(): Moment[] {
    const { m, lives } = this, { start, end, address } = m.lives, unit = m.unit;
    if (!lives.length) return Array.from(m.time,
      (at, i) => ({ at, held: m.held[i]! * unit, reach: m.held[i]! * unit }));
    const changes = lives.flatMap((i) => [[start[i]!, i, 1], [end[i]!, i, 0]] as const)
      .sort((a, b) => a[0] - b[0] || a[2] - b[2]);
    const now = new Set<number>(), found: Moment[] = [];
    changes.forEach(([at, life, comes], n) => {
      if (comes) now.add(life); else now.delete(life);
      if (changes[n + 1]?.[0] === at) return;
      let held = 0, reach = 0;
      const above = (i: number) => address[i]! + Math.ceil(this.size(i) / unit) * unit;
      for (const i of [...now].sort((a, b) => address[a]! - address[b]!)) {
        const low = address[i]!, high = above(i);
        held += Math.max(0, high - Math.max(low, reach));
        reach = Math.max(reach, high);
      }
      found.push({ at, held, reach });
    });
    return found;
  }

  private drawLives(c: CanvasRenderingContext2D, w: number): void {
    const { m } = this, t = theme();
    timeAxis(c, this.kernel.totalNs, LEFT, w - 8, TOP, HEIGHT - BOTTOM);
    this.axis(c, w, HEIGHT);
    for (const i of this.lives.slice(0, MOST_RECTS)) {
      c.fillStyle = COLORS[m.lives.buffer[i]! % COLORS.length]!;
      const { left, right, top, low } = this.box(i, w), wide = right - left, high = low - top;
      c.fillRect(left, top, Math.max(wide - 0.5, 0.6), Math.max(high - 0.5, 1));
      if (wide > 50 && high > 12) {
        c.fillStyle = "#111"; c.textAlign = "left";
        c.fillText(this.buffer(i).name, left + 3, top + 11, wide - 4);
      }
    }
    this.cursor(c, w, HEIGHT, t.accent);
  }
  private drawHeld(c: CanvasRenderingContext2D, w: number): void {
    const t = theme();
    timeAxis(c, this.kernel.totalNs, LEFT, w - 8, TOP, HELD_HEIGHT - BOTTOM);
    this.axis(c, w, HELD_HEIGHT);
    this.moments.forEach(({ at, held, reach }, n) => {
      const left = this.x(at, w), right = this.x(this.moments[n + 1]?.at ?? this.whole, w);
      const wide = Math.max(0.5, right - left), y = (b: number) => this.y(b, HELD_HEIGHT);
      const [low, top, high] = [y(0), y(held), y(reach)];
      c.fillStyle = "#4e79a7"; c.fillRect(left, top, wide + 0.5, low - top);
      if (reach > held) { c.fillStyle = "#e1575999"; c.fillRect(left, high, wide + 0.5, top - high); }
    });
    this.cursor(c, w, HELD_HEIGHT, t.accent);
  }
  private axis(c: CanvasRenderingContext2D, w: number, height: number): void {
    const t = theme(), { unit } = this.m, least = this.extent / (height / 50);
    const step = unit === 1 ? 2 ** Math.ceil(Math.log2(least)) : unit * Math.ceil(least / unit);
    c.textAlign = "right"; c.strokeStyle = t.grid; c.fillStyle = t.soft;
    for (let b = 0; b <= this.extent; b += step) {
      const y = this.y(b, height);
      c.fillText(this.amount(b), LEFT - 6, y + 4);
      c.beginPath(); c.moveTo(LEFT, y); c.lineTo(w - 8, y); c.stroke();
    }
  }
  private cursor(c: CanvasRenderingContext2D, w: number, height: number, color: string): void {
    const x = this.x(this.now, w), isRight = x > w - 100;
    const label = `${this.now === this.peak ? "peak " : ""}${this.time(this.now)}`;
    c.strokeStyle = c.fillStyle = color; c.lineWidth = 2;
    c.beginPath(); c.moveTo(x, 4); c.lineTo(x, height - BOTTOM); c.stroke();
    c.lineWidth = 1;
    c.textAlign = isRight ? "right" : "left"; c.fillText(label, isRight ? x - 4 : x + 4, 12);
  }

  private click(e: MouseEvent): void {
    const w = this.pictures[0]!.width, share = (e.offsetX - LEFT) / (w - LEFT - 8);
    const tick = Math.min(this.whole - 1, Math.max(0, share * this.whole));
    const isLives = e.target === this.pictures[0]!.canvas;
    const hit = isLives ? this.lives.findLast((i) => this.covers(this.box(i, w), e.offsetX, e.offsetY)) : undefined;
    const bar = hit === undefined ? -1 : this.first(hit);
    if (bar >= 0) this.selection.pick(bar);
    this.show(tick, hit);
  }
  private key(e: KeyboardEvent): void {
    const at = this.moments.findLastIndex((moment) => moment.at <= this.now),
      by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (by === undefined && e.key !== "Home") return;
    e.preventDefault();
    this.show(by === undefined ? this.peak : this.moments[Math.min(this.moments.length - 1, Math.max(0, at + by))]!.at);
  }

  /** Shows a moment, and what is known of a buffer. */
  private show(tick: number, hit?: number): void {
    const present = this.presentAt(tick);
    this.now = tick;
    this.details.textContent = this.occupied(tick, present.length)
      + (hit === undefined ? "" : ` Selected: ${this.named(hit)}.`) + this.instruction();
    this.present.replaceChildren(...(present.length ? [this.listed(present)] : []));
    this.pictures.forEach((picture) => picture.request());
  }
  /** What is held at a moment by so many buffers, and what is free between them. */
  private occupied(tick: number, buffers: number): string {
    const { held, reach } = this.moments.findLast(({ at }) => at <= tick) ?? { held: 0, reach: 0 };
    const free = reach - held;
    const each = this.m.unit === 1 ? " per partition" : "";
    const by = buffers ? ` by ${count(buffers, "buffer")}, up to byte ${reach}` : "";
    const between = free ? `${bytes(free)} between them are free (${percent(free / reach)})`
      : "nothing between them is free";
    return `At ${this.time(tick)}: ${this.amount(held)}${each} held${by}; ${between}.`;
  }
  private amount(b: number): string { return this.m.unit === 1 ? bytes(b) : count(b / this.m.unit, "bank"); }
  /** The buffers of the moment, the largest first. */
  private listed(present: number[]): HTMLElement {
    const rows = present.sort((a, b) => this.size(b) - this.size(a)).slice(0, MOST_ROWS).map((life) => {
      const { name, shape, dtype, bytes } = this.buffer(life);
      return [name, shape.join(" × "), dtype, bytes, this.m.lives.address[life]!, this.span(life)];
    });
    const moment = this.now === this.peak ? "the peak" : this.time(this.now);
    const most = present.length > MOST_ROWS ? `, the largest ${MOST_ROWS} of ${present.length}` : "";
    return table(["buffer", "shape", "dtype", "bytes per partition", "from byte", "lives"], rows,
      `${this.name} at ${moment}${most}`);
  }
  private span(life: number): string {
    return `${this.time(this.m.lives.start[life]!)} to ${this.time(this.m.lives.end[life]!)}`;
  }
  private instruction(): string {
    const { bar } = this.selection, { start, call } = this.kernel.bars;
    return bar >= 0 && start[bar] === this.now
      ? ` The selected ${this.kernel.calls[call[bar]!]!.instruction} starts here.` : "";
  }
  private named(life: number): string {
    const b = this.buffer(life), from = `from byte ${this.m.lives.address[life]}`;
    return `${b.name}, ${b.dtype} ${JSON.stringify(b.shape)}, ${bytes(b.bytes)} per partition ${from}, `
      + `from ${this.span(life)}`;
  }
  /** How long buffers live: the ones first that hold the most bytes for the longest. */
  private lifetimes(): HTMLElement | null {
    const { m } = this, of = new Map<number, number[]>();
    for (const i of this.lives) {
      const buffer = m.lives.buffer[i]!, lives = of.get(buffer) ?? of.set(buffer, []).get(buffer)!;
      lives.push(m.lives.end[i]! - m.lives.start[i]!);
    }
    const all = [...of].map(([number, lives]) => ({
      b: m.buffers[number]!, lives: lives.length, sum: lives.reduce((s, t) => s + t, 0),
      longest: lives.reduce((a, b) => Math.max(a, b), 0),
    }));
    const total = all.reduce((s, { b, sum }) => s + b.bytes * sum, 0) || 1;
    const rows = all.sort((a, b) => b.b.bytes * b.sum - a.b.bytes * a.sum).slice(0, MOST_ROWS)
      .map(({ b, lives, sum, longest }) =>
        [b.name, b.bytes, lives, this.time(sum / lives), this.time(longest), percent((b.bytes * sum) / total)]);
    const head = ["buffer", "bytes per partition", "lives", "mean life", "longest life", "share of bytes × time"];
    const most = all.length > MOST_ROWS ? `, ${MOST_ROWS} of ${all.length} buffers` : "";
    return rows.length ? table(head, rows, `Lifetimes in ${this.name}${most}`) : null;
  }
}
