// What instructions wrote: heat map, histogram and counts, step by step in both directions.
import type { Kernel, Result } from "./data.ts";
import { Picture, el, theme } from "./dom.ts";
import type { Selection } from "./model.ts";

const SIDE = 300;
/** Marks of cells: what they say, their colors. */
const MARKS: Record<number, [name: string, color: string]> = {
  255: ["NaN", "#d1242f"], 254: ["+infinity", "#e040fb"], 253: ["−infinity", "#00897b"],
  252: ["never written", "#8c959f"],
};

export class TensorsView {
  readonly root = el("div");
  private at = 0;
  private name = "";
  private readonly text = el("div", { class: "details", "aria-live": "polite" });
  private readonly heat: Picture;
  private readonly bars: Picture;
  private readonly slider: HTMLInputElement;
  private readonly starts: number[] = [];

  constructor(private readonly kernel: Kernel, private readonly selection: Selection) {
    this.heat = new Picture(() => SIDE, (c) => this.drawHeat(c), "Heat map of the result");
    this.bars = new Picture(() => 120, (c, w) => this.drawBars(c, w), "Histogram of the result");
    const oninput = () => this.go(this.shown[+this.slider.value]!);
    const range = { type: "range", min: 0, value: 0, "aria-label": "Result", oninput };
    this.slider = el("input", range) as HTMLInputElement;
    const t = kernel.tensors;
    if (!t || !t.results.length) {
      this.root.append(el("p", {}, "No results are kept: the kernel was not run with values."));
      return;
    }
    let start = 0;
    for (const r of t.results) { this.starts.push(start); start += r.rows * r.columns; }
    const names = [...new Set(t.results.map((r) => r.tensor))];
    const onchange = (e: Event) => {
      this.name = (e.target as HTMLSelectElement).value;
      this.go(this.shown.find((i) => i >= this.at) ?? this.shown.at(-1)!);
    };
    const options = [el("option", { value: "" }, "all tensors"), ...names.map((n) => el("option", { value: n }, n))];
    const choose = el("select", { id: "tensor", onchange }, ...options);
    const step = (by: number) => {
      const shown = this.shown, next = shown.indexOf(this.at) + by;
      this.go(shown[Math.min(shown.length - 1, Math.max(0, next))]!);
    };
    const left = Object.entries(t.left);
    const key = Object.values(MARKS).reverse()
      .map(([name, color]) => el("span", { class: "key", style: `--key: ${color}` }, name));
    const others = left.map(([n, c]) => `${n} (${c})`).join(", ");
    this.root.append(el("p", { class: "bar" }, el("label", { for: "tensor" }, "Tensor "), choose,
      el("button", { onclick: () => step(-1) }, "Step back"),
      el("button", { onclick: () => step(1) }, "Step forward"), this.slider),
      this.text, this.heat.canvas, el("p", { class: "soft" }, ...key), this.bars.canvas,
      left.length ? el("p", { class: "soft" }, `The first ${t.results.length} results are kept. Not kept: ${others}. `,
        "nki-run --results N, or page(…, results=N), keeps more, nki-run --dump DIR writes what every tensor held "
          + "at the end.") : "");
    selection.follow(() => this.follow());
    this.go(0, false);
    this.follow();
  }

  private get results(): Result[] { return this.kernel.tensors!.results; }
  private get shown(): number[] {
    return this.results.map((_, i) => i).filter((i) => !this.name || this.results[i]!.tensor === this.name);
  }

  private go(at: number, picks = true): void {
    this.at = at;
    const shown = this.shown, r = this.results[at]!;
    this.slider.max = String(shown.length - 1);
    this.slider.value = String(shown.indexOf(at));
    const number = (v: number) => Number(v.toPrecision(6)).toString();
    const place = `${shown.indexOf(at) + 1} of ${shown.length}: `;
    this.text.replaceChildren(el("p", {}, place, el("b", {}, r.tensor), r.step < 0 ? " is an input"
      : ` after instruction ${r.step + 1} (${this.instruction(r.step)})`,
      `: ${r.dtype} ${r.shape.join(" × ")}${r.first.length ? ` from element [${r.first.join(", ")}]` : ""}. `,
      `From ${number(r.least)} to ${number(r.greatest)}, mean ${number(r.mean)}. `,
      el("span", { class: r.nans ? "error" : "" }, `${r.nans} NaN`), `, ${r.infinite} infinite`,
      r.unwritten ? `, ${r.unwritten} that nothing has written, or computed from such.` : "."),
        el("p", { class: "soft" }, this.sampled(r)));
    this.heat.request(); this.bars.request();
    if (picks && r.step >= 0) {
      const bar = this.kernel.bars.instance.indexOf(r.step);
      if (bar >= 0 && bar !== this.selection.bar) this.selection.pick(bar);
    }
  }
  private instruction(step: number): string {
    const bar = this.kernel.bars.instance.indexOf(step);
    return bar < 0 ? "not in the timeline" : this.kernel.calls[this.kernel.bars.call[bar]!]!.instruction;
  }
  private follow(): void {
    if (this.selection.bar < 0) return;
    const step = this.kernel.bars.instance[this.selection.bar]!;
    const at = step < 0 ? -1 : this.results.findIndex((r) => r.step === step);
    if (at >= 0 && at !== this.at) { this.name = ""; this.go(at, false); }
  }

  /** What the cells and the histogram leave out of a result. */
  private sampled(r: Result): string {
    const size = r.shape.reduce((a, b) => a * b, 1), counted = r.histogram.reduce((a, b) => a + b, 0);
    const cells = `Sampled: ${r.rows} × ${r.columns} cells for ${r.shape.join(" × ")} elements. A cell has the color `
      + "of the first element of its block, or that of a NaN, infinite or unwritten element anywhere in the block";
    const bars = counted < size - r.nans - r.infinite - r.unwritten
      ? "; the histogram counts evenly spaced elements" : "";
    return size > r.rows * r.columns ? `${cells}${bars}.` : "";
  }

  private drawHeat(c: CanvasRenderingContext2D): void {
    if (!this.starts.length) return;
    const r = this.results[this.at]!, { pictures, levels } = this.kernel.tensors!, first = this.starts[this.at]!;
    const cell = Math.min(SIDE / r.rows, Math.min(600, this.heat.width - 160) / r.columns, 40);
    for (let y = 0; y < r.rows; y++) for (let x = 0; x < r.columns; x++) {
      const level = pictures[first + y * r.columns + x]!;
      const share = level / levels;
      c.fillStyle = MARKS[level]?.[1] ?? `hsl(${240 - 190 * share} 70% ${25 + 50 * share}%)`;
      // Cells have whole pixels: fractions of them would be drawn as lines between cells.
      const left = Math.round(x * cell), top = Math.round(y * cell);
      c.fillRect(left, top, Math.round((x + 1) * cell) - left, Math.round((y + 1) * cell) - top);
    }
    c.fillStyle = theme().soft; c.textAlign = "left";
    ["rows: dimension 0", "blue: least", "yellow: greatest"]
      .forEach((line, i) => c.fillText(line, r.columns * cell + 12, 14 + 16 * i));
  }
  private drawBars(c: CanvasRenderingContext2D, w: number): void {
    if (!this.starts.length) return;
    const r = this.results[this.at]!, most = Math.max(1, ...r.histogram), wide = Math.min(600, w) / r.histogram.length;
    c.fillStyle = "#4e79a7";
    r.histogram.forEach((n, i) => { const h = 90 * n / most; c.fillRect(i * wide, 95 - h, wide - 1, h); });
    c.fillStyle = theme().soft; c.textAlign = "left"; c.fillText(String(Number(r.least.toPrecision(4))), 0, 112);
    if (r.greatest === r.least) return;
    c.textAlign = "right"; c.fillText(String(Number(r.greatest.toPrecision(4))), r.histogram.length * wide, 112);
  }
}
