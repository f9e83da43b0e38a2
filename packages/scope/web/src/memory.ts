// SBUF and PSUM over time: every buffer as a rectangle of its life and bytes, what is held and what
// is free between, the buffers of any moment (the peak first), how long each one lives.
import type { Column, Kernel, Memory } from "./data.ts";
import { Picture, bytes, el, percent, table, theme, time, timeAxis } from "./dom.ts";
import type { Selection } from "./model.ts";

const LEFT = 76, TOP = 20, BOTTOM = 20, HEIGHT = 280, HELD_HEIGHT = 130, MOST_RECTS = 20000, MOST_ROWS = 20;
const COLORS = ["#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#ff9da7", "#9c755f", "#e15759", "#86bcb6"];

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

  constructor(private readonly selection: Selection, private readonly name: string, private readonly m: Memory<Column>) {
    const kernel = this.kernel = selection.now;
    this.whole = Math.max(1, kernel.totalNs * kernel.perNs);
    this.lives = Array.from(m.lives.start.keys());
    this.moments = this.sweep();
    this.extent = this.moments.reduce((most, { held, reach }) => Math.max(most, held, reach), m.unit === 1 ? 1 : m.unit);
    const best = this.moments.reduce((best, { held }, i) => held > this.moments[best]!.held ? i : best, 0);
    this.peak = this.now = this.moments[best]?.at ?? 0;
    const most = Array.from(m.held).reduce((a, b) => Math.max(a, b), 0), limit = m.unit === 1 ? m.bytes : m.bytes / m.unit, unit = m.unit === 1 ? "bytes per partition" : "banks";
    this.pictures = [
      new Picture(() => HEIGHT, (c, w) => this.drawLives(c, w), `Buffers of ${name} over time, by address: at most ${most} ${unit}. Arrow keys move the moment.`),
      new Picture(() => HELD_HEIGHT, (c, w) => this.drawHeld(c, w), `${name} held over time, and what is free between the buffers`),
    ];
    if (!most) { this.root = el("section", {}, el("h3", {}, name), el("p", { class: "soft" }, `The kernel has no buffer in ${name}.`)); return; }
    for (const { canvas } of this.pictures) { canvas.addEventListener("click", (e) => this.click(e)); canvas.addEventListener("keydown", (e) => this.key(e)); }
    this.root = el("section", {}, el("h3", {}, name), el("p", {}, `At most ${most} of ${limit} ${unit} (${percent(most / limit)}), at ${this.time(this.peak)}. `,
      this.lives.length ? "" : "Lives of buffers are left out: not every iteration was played.", this.lives.length > MOST_RECTS ? `The first ${MOST_RECTS} of ${this.lives.length} lives are drawn.` : ""),
      this.lives.length ? this.pictures[0]!.canvas : null, el("p", { class: "soft" }, el("span", { class: "key", style: "--key: #4e79a7" }, "held"), el("span", { class: "key", style: "--key: #e1575999" }, "free between the buffers, below the highest one (fragmentation)")),
      this.pictures[1]!.canvas, this.details, this.present, this.lifetimes());
    if (selection.bar < 0) this.show(this.peak); else this.follow();
  }

  /** Shows the moment at which the selected instruction starts. */
  follow(): void {
    const { bar } = this.selection;
    if (bar >= 0) this.show(this.kernel.bars.start[bar]!);
  }
  /** The instruction that a buffer's life begins with. */
  private first(life: number): number {
    const { start, call } = this.kernel.bars, at = this.m.lives.start[life]!, name = this.m.buffers[this.m.lives.buffer[life]!]!.name;
    const accesses = (bar: number) => Object.values(this.kernel.calls[call[bar]!]!.operands).some((text) => text.startsWith(`${name} `));
    return start.findIndex((tick, bar) => tick === at && accesses(bar));
  }

  private time(tick: number): string { return time(tick / this.kernel.perNs); }
  private size(life: number): number { return this.m.buffers[this.m.lives.buffer[life]!]!.bytes; }
  private x(tick: number, width: number): number { return LEFT + (tick / this.whole) * (width - LEFT - 8); }
  private y(byte: number, height: number): number { return height - BOTTOM - (byte / this.extent) * (height - TOP - BOTTOM); }
  private presentAt(tick: number): number[] { return this.lives.filter((i) => this.m.lives.start[i]! <= tick && tick < this.m.lives.end[i]!); }

  /** Every change of what is held: without lives, as the timeline counts it. */
  private sweep(): Moment[] {
    const { m, lives } = this, { start, end, address } = m.lives, unit = m.unit;
    if (!lives.length) return Array.from(m.time, (at, i) => ({ at, held: m.held[i]! * unit, reach: m.held[i]! * unit }));
    const changes = lives.flatMap((i) => [[start[i]!, i, 1], [end[i]!, i, 0]] as const).sort((a, b) => a[0] - b[0] || a[2] - b[2]);
    const now = new Set<number>(), found: Moment[] = [];
    changes.forEach(([at, life, comes], n) => {
      if (comes) now.add(life); else now.delete(life);
      if (changes[n + 1]?.[0] === at) return;
      let held = 0, reach = 0;
      for (const [low, high] of [...now].map((i): [number, number] => [address[i]!, address[i]! + Math.ceil(this.size(i) / unit) * unit]).sort((a, b) => a[0] - b[0])) {
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
      const [left, top, low] = [this.x(m.lives.start[i]!, w), this.y(m.lives.address[i]! + this.size(i), HEIGHT), this.y(m.lives.address[i]!, HEIGHT)];
      const wide = this.x(m.lives.end[i]!, w) - left, high = low - top;
      c.fillRect(left, top, Math.max(wide - 0.5, 0.6), Math.max(high - 0.5, 1));
      if (wide > 50 && high > 12) { c.fillStyle = "#111"; c.textAlign = "left"; c.fillText(m.buffers[m.lives.buffer[i]!]!.name, left + 3, top + 11, wide - 4); }
    }
    this.cursor(c, w, HEIGHT, t.accent);
  }
  private drawHeld(c: CanvasRenderingContext2D, w: number): void {
    const t = theme();
    timeAxis(c, this.kernel.totalNs, LEFT, w - 8, TOP, HELD_HEIGHT - BOTTOM);
    this.axis(c, w, HELD_HEIGHT);
    this.moments.forEach(({ at, held, reach }, n) => {
      const left = this.x(at, w), wide = Math.max(0.5, this.x(this.moments[n + 1]?.at ?? this.whole, w) - left), [low, top, high] = [0, held, reach].map((b) => this.y(b, HELD_HEIGHT)) as [number, number, number];
      c.fillStyle = "#4e79a7"; c.fillRect(left, top, wide + 0.5, low - top);
      if (reach > held) { c.fillStyle = "#e1575999"; c.fillRect(left, high, wide + 0.5, top - high); }
    });
    this.cursor(c, w, HELD_HEIGHT, t.accent);
  }
  private axis(c: CanvasRenderingContext2D, w: number, height: number): void {
    const t = theme(), { unit } = this.m, lines = height / 50, step = unit === 1 ? 2 ** Math.ceil(Math.log2(this.extent / lines)) : unit * Math.ceil(this.extent / unit / lines);
    c.textAlign = "right"; c.strokeStyle = t.grid; c.fillStyle = t.soft;
    for (let b = 0; b <= this.extent; b += step) { c.fillText(unit === 1 ? bytes(b) : `${b / unit} bank${b === unit ? "" : "s"}`, LEFT - 6, this.y(b, height) + 4); c.beginPath(); c.moveTo(LEFT, this.y(b, height)); c.lineTo(w - 8, this.y(b, height)); c.stroke(); }
  }
  private cursor(c: CanvasRenderingContext2D, w: number, height: number, color: string): void {
    const x = this.x(this.now, w), label = this.now === this.peak ? `peak ${this.time(this.now)}` : this.time(this.now), isRight = x > w - 100;
    c.strokeStyle = c.fillStyle = color; c.lineWidth = 2; c.beginPath(); c.moveTo(x, 4); c.lineTo(x, height - BOTTOM); c.stroke(); c.lineWidth = 1;
    c.textAlign = isRight ? "right" : "left"; c.fillText(label, isRight ? x - 4 : x + 4, 12);
  }

  private click(e: MouseEvent): void {
    const { m } = this, w = this.pictures[0]!.width, tick = Math.min(this.whole - 1, Math.max(0, ((e.offsetX - LEFT) / (w - LEFT - 8)) * this.whole));
    const isLives = e.target === this.pictures[0]!.canvas;
    const hit = isLives ? this.lives.findLast((i) => this.x(m.lives.start[i]!, w) - 1 <= e.offsetX && e.offsetX <= this.x(m.lives.end[i]!, w) + 1 && this.y(m.lives.address[i]! + this.size(i), HEIGHT) <= e.offsetY && e.offsetY <= this.y(m.lives.address[i]!, HEIGHT)) : undefined;
    const bar = hit === undefined ? -1 : this.first(hit);
    if (bar >= 0) this.selection.pick(bar);
    this.show(tick, hit);
  }
  private key(e: KeyboardEvent): void {
    const at = this.moments.findLastIndex((moment) => moment.at <= this.now), by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (by === undefined && e.key !== "Home") return;
    e.preventDefault();
    this.show(by === undefined ? this.peak : this.moments[Math.min(this.moments.length - 1, Math.max(0, at + by))]!.at);
  }

  /** Shows a moment, and what is known of a buffer. */
  private show(tick: number, hit?: number): void {
    const { m } = this, moment = this.moments.findLast((each) => each.at <= tick) ?? { at: 0, held: 0, reach: 0 }, present = this.presentAt(tick);
    this.now = tick;
    const amount = (b: number) => m.unit === 1 ? `${bytes(b)} per partition` : `${b / m.unit} bank${b === m.unit ? "" : "s"}`;
    const free = moment.reach - moment.held;
    this.details.textContent = `At ${this.time(tick)}: ${amount(moment.held)} held${present.length ? ` by ${present.length} buffer${present.length > 1 ? "s" : ""}, up to byte ${moment.reach}` : ""}; ${free ? `${bytes(free)} between them are free (${percent(free / moment.reach)})` : "nothing between them is free"}.` + (hit === undefined ? "" : ` Selected: ${this.named(hit)}.`) + this.instruction();
    const rows = present.sort((a, b) => this.size(b) - this.size(a)).slice(0, MOST_ROWS).map((i) => { const b = m.buffers[m.lives.buffer[i]!]!; return [b.name, b.shape.join(" × "), b.dtype, b.bytes, m.lives.address[i]!, `${this.time(m.lives.start[i]!)} to ${this.time(m.lives.end[i]!)}`]; });
    this.present.replaceChildren(...(rows.length ? [table(["buffer", "shape", "dtype", "bytes per partition", "from byte", "lives"], rows, `${this.name} at ${this.now === this.peak ? "the peak" : this.time(tick)}${present.length > MOST_ROWS ? `, the largest ${MOST_ROWS} of ${present.length}` : ""}`)] : []));
    this.pictures.forEach((picture) => picture.request());
  }
  private instruction(): string {
    const { bar } = this.selection, { start, call } = this.kernel.bars;
    return bar >= 0 && start[bar] === this.now ? ` The selected ${this.kernel.calls[call[bar]!]!.instruction} starts here.` : "";
  }
  private named(life: number): string {
    const { m } = this, b = m.buffers[m.lives.buffer[life]!]!;
    return `${b.name}, ${b.dtype} ${JSON.stringify(b.shape)}, ${bytes(b.bytes)} per partition from byte ${m.lives.address[life]}, from ${this.time(m.lives.start[life]!)} to ${this.time(m.lives.end[life]!)}`;
  }
  /** How long buffers live: the ones first that hold the most bytes for the longest. */
  private lifetimes(): HTMLElement | null {
    const { m } = this, of = new Map<number, number[]>();
    for (const i of this.lives) (of.get(m.lives.buffer[i]!) ?? of.set(m.lives.buffer[i]!, []).get(m.lives.buffer[i]!)!).push(m.lives.end[i]! - m.lives.start[i]!);
    const all = [...of].map(([number, lives]) => ({ b: m.buffers[number]!, count: lives.length, sum: lives.reduce((s, t) => s + t, 0), longest: lives.reduce((a, b) => Math.max(a, b), 0) }));
    const total = all.reduce((s, { b, sum }) => s + b.bytes * sum, 0) || 1;
    const rows = all.sort((a, b) => b.b.bytes * b.sum - a.b.bytes * a.sum).slice(0, MOST_ROWS).map(({ b, count, sum, longest }) => [b.name, b.bytes, count, this.time(sum / count), this.time(longest), percent((b.bytes * sum) / total)]);
    return rows.length ? table(["buffer", "bytes per partition", "lives", "mean life", "longest life", "share of bytes × time"], rows, `Lifetimes in ${this.name}${all.length > MOST_ROWS ? `, ${MOST_ROWS} of ${all.length} buffers` : ""}`) : null;
  }
}
