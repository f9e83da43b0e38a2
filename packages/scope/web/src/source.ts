// The source: every line with its share of the critical path, busy time, stalls and HBM bytes.
import type { Kernel } from "./data.ts";
import { bytes, count, el, percent, time } from "./dom.ts";
import { type Line, type Selection, byLine } from "./model.ts";

const METRICS: [name: keyof Line & string, label: string][] =
  [["path", "critical path"], ["busy", "busy time"], ["stall", "stalls"], ["bytes", "HBM bytes"]];
const AROUND = 8;

export class SourceView {
  readonly root = el("div");
  private readonly lines: Map<string, Line>;
  private metric: string = "path";
  private readonly body = el("div");
  private readonly details = el("div", { class: "details", "aria-live": "polite" });
  private readonly elements = new Map<string, HTMLElement>();

  constructor(private readonly kernel: Kernel, private readonly selection: Selection) {
    this.lines = byLine(kernel);
    const onchange = (e: Event) => { this.metric = (e.target as HTMLSelectElement).value; this.render(); };
    const choose = el("select", { id: "metric", onchange }, ...METRICS.map(([n, l]) => el("option", { value: n }, l)));
    this.root.append(el("p", { class: "bar" }, el("label", { for: "metric" }, "Heat by "), choose), this.details,
      this.body);
    this.render();
    selection.follow(() => this.changed());
    this.changed();
  }

  private value(line: Line | undefined): number { return line ? (line as any)[this.metric] as number : 0; }
  /** What all lines share: the kernel's time and bytes; busy time and stalls add up over engines and queues. */
  private total(): number {
    const { hbmBytes, totalNs, perNs } = this.kernel;
    const sum = () => [...this.lines.values()].reduce((all, line) => all + this.value(line), 0);
    return ({ bytes: hbmBytes, path: totalNs * perNs }[this.metric] ?? sum()) || 1;
  }
  private shown(value: number): string {
    return this.metric === "bytes" ? bytes(value) : time(value / this.kernel.perNs);
  }

  private render(): void {
    const most = Math.max(1, ...[...this.lines.values()].map((l) => this.value(l)));
    const total = this.total();
    this.elements.clear();
    const parts: Node[] = [];
    this.selection.document.files.forEach((file, number) => {
      const used = [...this.lines.keys()].filter((k) => k.startsWith(`${number}:`)).map((k) => +k.split(":")[1]!);
      if (!used.length) return;
      used.push(...file.lines.map((_, n) => n + 1).filter((n) => this.raised(file.path, n)));
      const rows = this.near(used, file.lines.length).map((n) => {
        const key = `${number}:${n}`, line = this.lines.get(key), value = this.value(line);
        const onclick = () => { if (line) this.pick(key, line); };
        const name = this.raised(file.path, n) ? "line raised" : "line";
        const row = el(line ? "button" : "div",
          { class: name, style: `--share:${Math.round(100 * value / most)}%`, onclick },
          el("span", { class: "heat" }, value ? `${this.shown(value)} ${percent(value / total)}` : ""),
          el("span", { class: "num" }, String(n)), el("code", {}, file.lines[n - 1] ?? ""));
        if (line) this.elements.set(key, row);
        return row;
      });
      parts.push(el("h3", {}, file.path), el("div", { class: "source scroll" }, ...rows));
    });
    const placeless = [...this.lines].filter(([k]) => !/^\d+:\d+$/.test(k));
    const items = placeless.map(([k, l]) => el("li", {}, `${k}: ${this.shown(this.value(l))}`));
    if (items.length) parts.push(el("h3", {}, "Without a source line"), el("ul", {}, ...items));
    this.body.replaceChildren(...parts);
    this.changed();
  }
  /** Whether a kernel has raised an error at the line. */
  private raised(path: string, line: number): boolean {
    return this.selection.document.errors.some((error) => error.includes(`${path}:${line}:`));
  }
  /** The lines to print: what is used and what is around, in order. */
  private near(used: number[], length: number): number[] {
    const found = new Set<number>();
    for (const n of used) {
      const last = Math.min(length || n, n + AROUND);
      for (let i = Math.max(1, n - AROUND); i <= last; i++) found.add(i);
    }
    return [...found].sort((a, b) => a - b);
  }
  private pick(key: string, line: Line): void { this.selection.pickLine(key, line.bars[0] ?? -1); }

  private changed(): void {
    for (const [key, row] of this.elements) row.setAttribute("aria-pressed", String(key === this.selection.key));
    const line = this.lines.get(this.selection.key);
    this.elements.get(this.selection.key)?.scrollIntoView({ block: "nearest" });
    if (!line) {
      this.details.replaceChildren(el("p", { class: "soft" }, "Select a line to mark its instructions in all views."));
      return;
    }
    const at = line.bars.indexOf(this.selection.bar), ns = (t: number) => time(t / this.kernel.perNs);
    const step = (by: number) => this.selection.pick(line.bars[Math.min(line.bars.length - 1, Math.max(0, at + by))]!);
    const all = line.bars.length > 1 ? " in all" : "";
    const times = `busy ${ns(line.busy)}${all}, stalls ${ns(line.stall)}${all}, critical path ${ns(line.path)}`;
    this.details.replaceChildren(el("p", {},
      `${count(line.bars.length, "micro-op")}: ${times}, ${bytes(line.bytes)} of HBM. `,
      at >= 0 ? `Number ${at + 1} is selected. ` : "",
      el("button", { onclick: () => step(-1) }, "Previous"), " ", el("button", { onclick: () => step(1) }, "Next")));
  }
}
