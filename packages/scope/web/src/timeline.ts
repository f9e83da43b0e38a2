// The timeline: a row per engine and DMA queue on a canvas; wheel and keys zoom and pan.
import type { Call, Column, Kernel } from "./data.ts";
import { type Theme, Picture, el, laneColor, percent, roundStep, theme, time } from "./dom.ts";
import { type Row, type Selection, keyOf, rows } from "./model.ts";

const LABELS = 120, ROW = 18, GAP = 3, HEAD = 22, HANDLE = 7, AWAY = 24;
const STALL = 4;
const CAUSES: Record<string, string> = { data: "#e15759", buffer: "#edc948", engine: "#bab0ac", resource: "#b07aa1" };
/** What a drawing needs: where a tick is, and how many pixels wide one is. */
interface Frame { c: CanvasRenderingContext2D; t: Theme; x: (tick: number) => number; scale: number }
let views = 0;

export class TimelineView {
  readonly root: HTMLElement;
  private rows: Row[] = [];
  /** Bar → number of its row. */
  private rowOf = new Int32Array(0);
  private marks: { key: string; kernel: Kernel; rows: Int32Array[] } | null = null;
  private readonly found = el("span", { class: "soft", "aria-live": "polite" });
  private from = 0;
  private until: number;
  private onPath: Set<number>;
  private readonly picture: Picture;
  private readonly details = el("div", { class: "details", "aria-live": "polite" });
  private readonly uses = el("div", {});
  private readonly level = el("p", { class: "soft", "aria-live": "off" });
  /** Bars that the last drawing passed over. */
  private merged = 0;
  private drag: { x: number; y: number; from: number; until: number; moved: boolean; wait: boolean } | null = null;

  /** With `cut`, the wait of the selected bar has a handle; dragged away, it calls `cut`. */
  constructor(private kernel: Kernel, private readonly selection: Selection,
    private readonly cut: (() => void) | null = null) {
    const keys = `timeline-keys-${views++}`;
    this.onPath = this.place(kernel);
    this.until = this.whole;
    this.picture = new Picture(() => HEAD + this.rows.length * (ROW + GAP) + 6, (c, w) => this.draw(c, w),
      `Timeline of ${kernel.name}: ${this.rows.length} rows, ${time(kernel.totalNs)}`);
    const canvas = this.picture.canvas;
    canvas.setAttribute("aria-describedby", keys);
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    canvas.addEventListener("pointerdown", (e) => {
      const { offsetX: x, offsetY: y } = e;
      this.drag = { x, y, from: this.from, until: this.until, moved: false, wait: this.isOnHandle(x, y) };
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener("pointermove", (e) => this.move(e));
    canvas.addEventListener("pointerup", (e) => this.drop(e));
    canvas.addEventListener("dblclick", () => this.see(0, this.whole));
    canvas.addEventListener("keydown", (e) => this.key(e));
    const button = (text: string, act: () => void) => el("button", { onclick: act }, text);
    const bar = el("p", { class: "bar" },
      button("Whole", () => this.see(0, this.whole)), button("Zoom in", () => this.zoom(0.5)),
      button("Zoom out", () => this.zoom(2)), button("Selected", () => this.seeBar()),
      button("Previous", () => this.step(-1)), button("Next", () => this.step(1)),
      button("Waited for", () => this.cause()), this.search(), this.found);
    const help = "Wheel or + and −: zoom; drag or ← and →: pan; ↑ and ↓: previous and next instruction of the row; C: "
      + "what it waited for; /: find; 0: whole. Outlined bars are on the critical path.";
    this.root = el("div", {}, bar, canvas, el("p", { class: "soft", id: keys }, help), this.legend(),
      kernel.repeats.length ? el("p", { class: "soft" }, this.leftOut()) : "",
      this.level, this.details, this.uses);
    this.uses.replaceChildren(this.stalls());
    selection.follow(() => this.changed());
    this.changed();
  }

  /** Shows another timeline of the same bars. */
  replace(kernel: Kernel): void {
    const was = this.until - this.from >= this.whole;
    this.kernel = kernel;
    this.onPath = this.place(kernel);
    this.see(was ? 0 : this.from, was ? this.whole : this.until);
    this.uses.replaceChildren(this.stalls());
    this.changed();
  }

  /** Puts the bars on rows; those of the critical path. */
  private place(kernel: Kernel): Set<number> {
    this.rows = rows(kernel);
    this.rowOf = new Int32Array(kernel.bars.lane.length);
    this.rows.forEach((row, n) => { for (const bar of row.bars) this.rowOf[bar] = n; });
    return new Set(kernel.path.bar);
  }
  private get whole(): number { return Math.max(1, this.kernel.totalNs * this.kernel.perNs); }
  private scale(width = this.picture.width): number { return (width - LABELS - 8) / (this.until - this.from); }

  see(from: number, until: number): void {
    const span = Math.min(this.whole, Math.max(4, until - from));
    this.from = Math.min(Math.max(0, from), this.whole - span);
    this.until = this.from + span;
    this.picture.request();
  }
  private zoom(factor: number, at = 0.5): void {
    const span = this.until - this.from, pivot = this.from + at * span;
    this.see(pivot - at * span * factor, pivot + (1 - at) * span * factor);
  }
  private seeBar(): void {
    const bar = this.selection.bar;
    if (bar < 0) return;
    const { start, busy } = this.kernel.bars, length = Math.max(8, busy[bar]!);
    this.see(start[bar]! - 3 * length, start[bar]! + 4 * length);
  }
  private wheel(e: WheelEvent): void {
    // The whole cannot be zoomed out: the page scrolls on.
    if (!e.shiftKey && e.deltaY > 0 && this.until - this.from >= this.whole) return;
    e.preventDefault();
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      const by = (e.deltaX || e.deltaY) / this.scale();
      this.see(this.from + by, this.until + by);
    } else this.zoom(Math.exp(e.deltaY / 400),
      Math.min(1, Math.max(0, (e.offsetX - LABELS) / (this.picture.width - LABELS))));
  }
  private move(e: PointerEvent): void {
    if (!this.drag) {
      const bar = this.barAt(e.offsetX, e.offsetY);
      this.picture.canvas.title = bar < 0 ? "" : this.title(bar);
      return;
    }
    if (this.drag.wait) return;
    const by = (this.drag.x - e.offsetX) / this.scale();
    if (Math.abs(this.drag.x - e.offsetX) > 3) this.drag.moved = true;
    if (this.drag.moved) this.see(this.drag.from + by, this.drag.until + by);
  }
  private drop(e: PointerEvent): void {
    const drag = this.drag;
    this.drag = null;
    if (drag?.wait) { if (Math.hypot(e.offsetX - drag.x, e.offsetY - drag.y) > AWAY) this.cut!(); }
    else if (drag && !drag.moved) this.selection.pick(this.barAt(e.offsetX, e.offsetY));
  }
  /** The ends of the line from what the selected bar waited for to the bar, in pixels. */
  private waitLine(): [x: number, y: number, x2: number, y2: number] | null {
    const bar = this.selection.bar, cause = bar < 0 || !this.cut ? -1 : this.kernel.bars.cause[bar]!;
    if (cause < 0) return null;
    const { start, busy } = this.kernel.bars, scale = this.scale(),
      x = (tick: number) => LABELS + (tick - this.from) * scale;
    const y = (n: number) => this.top(this.rowOf[n]!) + ROW / 2;
    return [x(start[cause]! + busy[cause]!), y(cause), x(start[bar]!), y(bar)];
  }
  private isOnHandle(x: number, y: number): boolean {
    const wait = this.waitLine();
    return wait !== null && Math.hypot(x - (wait[0] + wait[2]) / 2, y - (wait[1] + wait[3]) / 2) <= HANDLE + 2;
  }
  private drawWait(c: CanvasRenderingContext2D, t: ReturnType<typeof theme>): void {
    const wait = this.waitLine();
    if (!wait) return;
    c.strokeStyle = t.accent; c.fillStyle = t.back; c.lineWidth = 2;
    c.beginPath(); c.moveTo(wait[0], wait[1]); c.lineTo(wait[2], wait[3]); c.stroke();
    const [x, y] = [(wait[0] + wait[2]) / 2, (wait[1] + wait[3]) / 2];
    c.beginPath(); c.arc(x, y, HANDLE, 0, 2 * Math.PI); c.fill(); c.stroke();
    this.picture.canvas.dataset.handle = `${x},${y}`;
    c.lineWidth = 1;
  }
  private search(): HTMLElement {
    const onkeydown = (e: KeyboardEvent) => {
      if (e.key === "Enter") this.find((e.target as HTMLInputElement).value.trim().toLowerCase());
    };
    return el("input", { type: "search", size: 26, placeholder: "Find: name, operand, line", onkeydown,
      "aria-label": "Find an instruction by its name, an operand or its source line; Enter: the next one" });
  }
  /** Selects the next bar whose instruction has the text, the first one behind the last. */
  private find(text: string): void {
    const { start, call } = this.kernel.bars, has = this.kernel.calls.map((each) => this.text(each).includes(text));
    const bars = Array.from(call.keys()).filter((bar) => text !== "" && has[call[bar]!])
      .sort((a, b) => start[a]! - start[b]! || a - b);
    const at = (bars.indexOf(this.selection.bar) + 1) % (bars.length || 1);
    this.found.textContent = text && (bars.length ? `${at + 1} of ${bars.length}` : "not found");
    if (!bars.length) return;
    this.selection.pick(bars[at]!);
    this.reveal(bars[at]!);
  }
  /** What a search looks through: the instruction with its operands, and its line. */
  private text(call: Call): string {
    const line = call.at && this.selection.document.files[call.at[0]]?.lines[call.at[1] - 1];
    return [call.instruction, call.name, ...Object.values(call.operands), line].join(" ").toLowerCase();
  }
  private key(e: KeyboardEvent): void {
    const span = this.until - this.from;
    const act = ({
      ArrowLeft: () => this.see(this.from - span / 5, this.until - span / 5),
      ArrowRight: () => this.see(this.from + span / 5, this.until + span / 5),
      ArrowDown: () => this.step(1), ArrowUp: () => this.step(-1), Enter: () => this.seeBar(), c: () => this.cause(),
      "+": () => this.zoom(0.5), "=": () => this.zoom(0.5), "-": () => this.zoom(2),
      "0": () => this.see(0, this.whole), Home: () => this.see(0, this.whole),
      "/": () => this.root.querySelector("input")!.focus(),
    } as Record<string, () => void>)[e.key];
    if (act && !e.ctrlKey && !e.metaKey) { e.preventDefault(); act(); }
  }
  private step(by: number): void {
    const bar = this.selection.bar, row = this.rows[bar < 0 ? 0 : this.rowOf[bar]!];
    if (!row) return;
    const at = bar < 0 ? 0 : row.bars.indexOf(bar) + by,
      next = row.bars[Math.min(row.bars.length - 1, Math.max(0, at))]!;
    this.selection.pick(next);
    this.reveal(next);
  }
  private cause(): void {
    const bar = this.selection.bar, cause = bar < 0 ? -1 : this.kernel.bars.cause[bar]!;
    if (cause >= 0) { this.selection.pick(cause); this.reveal(cause); }
  }
  private reveal(bar: number): void {
    const start = this.kernel.bars.start[bar]!, span = this.until - this.from;
    if (start < this.from || start > this.until) this.see(start - span / 2, start + span / 2);
  }
  private barAt(x: number, y: number): number {
    const row = this.rows[Math.floor((y - HEAD) / (ROW + GAP))];
    if (!row || x < LABELS) return -1;
    const tick = this.from + (x - LABELS) / this.scale(), { start, busy } = this.kernel.bars;
    const at = after(row.bars, start, tick) - 1, slack = 3 / this.scale();
    for (const n of [at, at + 1]) {
      const bar = row.bars[n];
      if (bar !== undefined && start[bar]! - slack <= tick && tick <= start[bar]! + busy[bar]! + slack) return bar;
    }
    return -1;
  }
  private title(bar: number): string {
    const { start, busy, call } = this.kernel.bars, c = this.kernel.calls[call[bar]!]!,
      ns = (t: number) => t / this.kernel.perNs;
    return `${c.name ?? c.instruction}: ${time(ns(start[bar]!))}, for ${time(ns(busy[bar]!))}`;
  }

  private changed(): void {
    this.picture.request();
    const bar = this.selection.bar;
    this.details.classList.toggle("follow", bar >= 0);
    if (bar < 0) {
      this.details.replaceChildren(el("p", { class: "soft" }, "Select a bar to see its instruction."));
      return;
    }
    const call = this.call(bar), operands = Object.entries(call.operands).map(([name, value]) => `${name}=${value}`);
    this.details.replaceChildren(el("h3", {}, this.named(call)),
      el("p", {}, `${this.work(bar)} ${this.times(bar)} ${this.wait(bar)} `, this.movedAt(bar, call)),
      el("p", { class: "code" }, operands.join("  ")));
  }
  private named(call: Call): string { return call.name ?? call.instruction; }
  private call(bar: number): Call { return this.kernel.calls[this.kernel.bars.call[bar]!]!; }
  private work(bar: number): string {
    const { kinds, bars } = this.kernel, kind = kinds[bars.kind[bar]!]!.replace("_", " ");
    const instance = bars.instance[bar]!;
    const execution = instance < 0 ? "one of several executions" : `execution ${instance + 1}`;
    return `${this.call(bar).instruction}, ${kind} on ${this.laneName(bar)}, ${execution}.`;
  }
  private times(bar: number): string {
    const { start, busy, end } = this.kernel.bars;
    const [at, length, result] = [start, busy, end].map((column) => time(column[bar]! / this.kernel.perNs));
    return `Starts at ${at}, occupies it for ${length}, result at ${result}.`;
  }
  private wait(bar: number): string {
    const { bars, causes } = this.kernel, cause = bars.cause[bar]!;
    if (cause < 0) return "Waited for nothing.";
    return `Waited for ${causes[bars.why[bar]!]} of ${this.call(cause).instruction} on ${this.laneName(cause)}.`;
  }
  private movedAt(bar: number, { at }: Call): string {
    const moved = this.kernel.bars.bytes[bar], file = at && this.selection.document.files[at[0]];
    return `${moved ? `Moves ${moved} HBM bytes. ` : ""}${file ? `Line ${at[1]} of ${file.path}.` : ""}`;
  }
  private laneName(bar: number): string {
    const lane = this.kernel.bars.lane[bar]!, names = this.kernel.laneNames;
    return names[lane] ?? `DMA queue ${lane - names.length}`;
  }
  private leftOut(): string {
    const { numOps, bars, repeats } = this.kernel;
    const each = repeats.slice(0, 3).map(([a, b, n, ns]) => `${n} times ${b! - a!} micro-ops, ${time(ns!)} apart`);
    return `The kernel has ${numOps} micro-ops; ${bars.lane.length} are drawn. Not drawn are iterations that repeat `
      + `earlier ones: ${each.join("; ")}${repeats.length > 3 ? "; …" : ""}.`;
  }
  private legend(): HTMLElement {
    return el("p", { class: "soft" }, "Below a gap, what the next instruction waited for: ",
      ...this.kernel.causes.map((name) => el("span", { class: "key", style: `--key: ${CAUSES[name]}` }, name)));
  }
  private stalls(): HTMLElement {
    const items = Object.entries(this.kernel.lanes).filter(([, use]) => use.busy).map(([name, use]) => {
      const parts = Object.entries(use.stalls).slice(0, 4).map(([cause, ns]) => `${cause} ${time(ns)}`);
      const stalled = this.kernel.laneNames.includes(name) ? "stalled" : "stalls of its queues, added";
      const busy = ` busy ${time(use.busy)} (${percent(use.busy / (this.kernel.totalNs || 1))})`;
      return el("li", {}, el("b", {}, name), busy, parts.length ? `; ${stalled}: ${parts.join(", ")}` : "");
    });
    return el("div", {}, el("h3", {}, "Engines and stalls by cause"), el("ul", {}, ...items));
  }

  private draw(c: CanvasRenderingContext2D, width: number): void {
    const t = theme(), scale = this.scale(width), x = (tick: number) => LABELS + (tick - this.from) * scale;
    const bottom = HEAD + this.rows.length * (ROW + GAP), ns = this.kernel.perNs;
    const step = roundStep((this.until - this.from) / ns / (width / 130));
    c.fillStyle = t.soft; c.strokeStyle = t.grid; c.textAlign = "center";
    for (let n = Math.ceil(this.from / ns / step); n * step * ns <= this.until; n++) {
      const at = Math.round(x(n * step * ns)) + 0.5;
      c.beginPath(); c.moveTo(at, HEAD - 4); c.lineTo(at, bottom); c.stroke();
      c.fillText(time(n * step), Math.min(at, width - 26), 12);
    }
    c.textAlign = "right"; c.fillStyle = t.ink;
    this.rows.forEach((row, n) => c.fillText(row.label, LABELS - 8, this.top(n) + 13));
    this.merged = 0;
    c.save();
    c.beginPath(); c.rect(LABELS, 0, width - LABELS, bottom + 6); c.clip();
    const frame = { c, t, x, scale };
    this.rows.forEach((row, n) => this.drawRow(frame, row, this.top(n)));
    this.drawSelection(frame);
    this.drawWait(c, t);
    c.restore();
    const text = this.merged
      ? "Level of detail: micro-ops narrower than a pixel are drawn as one at this zoom; zoom in to see each." : "";
    if (this.level.textContent !== text) this.level.textContent = text;
  }
  private top(row: number): number { return HEAD + row * (ROW + GAP); }

  /** Calls `each` with the bars to draw, one of those that start on the same pixel; how many are passed over. */
  private visible(
    bars: Int32Array, { x, scale }: Frame, each: (n: number, left: number, wide: number) => void,
  ): number {
    const { start, busy } = this.kernel.bars;
    let passed = 0;
    for (let n = Math.max(0, after(bars, start, this.from) - 1), next; n < bars.length; n = next) {
      if (start[bars[n]!]! > this.until) break;
      const left = x(start[bars[n]!]!), wide = busy[bars[n]!]! * scale;
      each(n, left, wide);
      next = n + 1;
      if (wide >= 1) continue;
      const edge = this.from + (Math.floor(left) + 1 - LABELS) / scale, last = after(bars, start, edge - 1e-9) - 1;
      // The last one on the pixel may be wider than it.
      next = Math.max(next, busy[bars[last]!]! * scale >= 1 ? last : last + 1);
      passed += next - n - 1;
    }
    return passed;
  }
  private drawRow(frame: Frame, row: Row, y: number): void {
    const { c, x } = frame, { why } = this.kernel.bars, color = laneColor(this.kernel.laneNames, row.lane);
    this.merged += this.visible(row.bars, frame, (n, left, wide) => {
      const free = x(row.free[n]!);
      if (left - free > 1) {
        c.fillStyle = CAUSES[this.kernel.causes[why[row.bars[n]!]!]!]!;
        c.fillRect(free, y + ROW - STALL, left - free, STALL);
      }
      this.drawBar(frame, row.bars[n]!, left, y, wide, color, "#111");
    });
  }
  /** The bars of the selected line above all others, and the frame of the selected one. */
  private drawSelection(frame: Frame): void {
    const { c, t, x, scale } = frame, { bar } = this.selection, { start, busy } = this.kernel.bars;
    this.marked().forEach((bars, row) => {
      let from = NaN, until = NaN;
      const drawRun = () => {
        c.fillStyle = t.accent;
        if (until > from) c.fillRect(from, this.top(row), until - from, ROW);
      };
      this.visible(bars, frame, (n, left, wide) => {
        if (wide >= 1) { this.drawBar(frame, bars[n]!, left, this.top(row), wide, t.accent, t.back); return; }
        // Narrow bars on neighbouring pixels are one rectangle.
        if (!(left - until < 1)) { drawRun(); from = left; }
        until = left + 0.8;
      });
      drawRun();
    });
    if (bar < 0) return;
    c.strokeStyle = t.ink; c.lineWidth = 3;
    c.strokeRect(x(start[bar]!), this.top(this.rowOf[bar]!), Math.max(busy[bar]! * scale, 2), ROW);
    c.lineWidth = 1;
  }
  private drawBar(
    { c, t }: Frame, bar: number, left: number, y: number, wide: number, color: string, ink: string,
  ): void {
    c.fillStyle = color;
    c.fillRect(left, y, Math.max(wide, 0.8), ROW);
    if (wide > 3 && this.onPath.has(bar)) {
      c.strokeStyle = t.ink; c.lineWidth = 1;
      c.strokeRect(left + 0.5, y + 0.5, wide - 1, ROW - 1);
    }
    if (wide <= 40) return;
    c.fillStyle = ink; c.textAlign = "left";
    c.save();
    c.beginPath(); c.rect(left, y, wide, ROW); c.clip();
    c.fillText(this.named(this.call(bar)), left + 4, y + 13);
    c.restore();
  }
  /** By row, the bars of the selected line; found again where the selection or the timeline has changed. */
  private marked(): Int32Array[] {
    const { key } = this.selection;
    if (this.marks?.key !== key || this.marks.kernel !== this.kernel) {
      const { call } = this.kernel.bars, keys = this.kernel.calls.map((each) => key !== "" && keyOf(each) === key);
      const rows = key === "" ? [] : this.rows.map((row) => row.bars.filter((bar) => keys[call[bar]!]));
      this.marks = { key, kernel: this.kernel, rows };
    }
    return this.marks.rows;
  }
}

/** How many of the sorted bars start at `tick` or before. */
export function after(bars: Int32Array, start: Column, tick: number): number {
  let low = 0, high = bars.length;
  while (low < high) { const mid = (low + high) >> 1; if (start[bars[mid]!]! <= tick) low = mid + 1; else high = mid; }
  return low;
}
