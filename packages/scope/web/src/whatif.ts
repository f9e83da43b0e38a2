// What if: the kernel is played again in the page with other costs, queues, buffers, waits.
// What the page does not play was played by the model when the page was written.
import type { Kernel, Model, Replay } from "./data.ts";
import { el, percent, table, time } from "./dom.ts";
import { Selection } from "./model.ts";
import { type Change, type Played, copiesOf, play } from "./player.ts";
import { TimelineView } from "./timeline.ts";

const HEADS: Record<string, string> = { target: "Another target", mode: "As the toolchain makes it, or as written", cost: "A cost that micro-ops are made of" };
const REMOVABLE = ["data", "buffer"];
const MOST_COPIES = 64, MOST_FACTOR = 1000;

export function whatIf(selection: Selection): HTMLElement {
  const { replay } = selection.now;
  const player = "reason" in replay ? el("p", {}, `The page does not play this kernel: ${replay.reason}.`) : new Experiment(selection, replay, selection.document.model).root;
  return el("div", {}, player, ...rows(selection.now));
}

/** The changes, the end that they give, and its timeline. */
class Experiment {
  readonly root: HTMLElement;
  private readonly kernel: Kernel;
  private readonly first: Played;
  private readonly view: TimelineView;
  /** That of the page, where the bars are numbered as in the kernel; elsewhere its line alone. */
  private readonly own: Selection;
  private change: Change;
  private played: Played;
  private readonly result = el("p", { class: "details", "aria-live": "polite" });
  private readonly controls = el("div", {});
  private readonly bar = el("div", {});
  private readonly open = new Set<string>();

  constructor(private readonly selection: Selection, private readonly replay: Replay, private readonly model: Model) {
    this.kernel = selection.now;
    this.change = this.nothing();
    this.first = this.played = play(replay, model, this.change);
    this.own = new Selection(selection.document);
    this.own.kernel = selection.kernel;
    this.view = new TimelineView(this.kernel, this.own, () => this.cut());
    this.root = el("div", {}, el("p", {}, "Change a cost, the queues, the copies of a buffer or the target, select a bar to change its instruction, or drag the handle of a wait away: the kernel is played again."),
      this.controls, this.bar, this.result, this.view.root);
    this.follow();
    this.own.follow(() => this.showBar());
    this.show();
  }
  /** Both selections change together. */
  private follow(): void {
    let passing = false;
    const pass = (from: Selection, to: Selection) => {
      if (passing) return;
      passing = true;
      to.pickLine(from.key, this.isNumbered ? from.bar : -1);
      passing = false;
    };
    this.selection.follow(() => pass(this.selection, this.own));
    this.own.follow(() => pass(this.own, this.selection));
    pass(this.selection, this.own);
  }
  /** Whether the bars are numbered as in the kernel. */
  private get isNumbered(): boolean {
    const [a, b] = [this.first, this.played];
    return a.candidate.table === b.candidate.table && a.candidate.reorders === b.candidate.reorders && a.bars.lane.length === b.bars.lane.length;
  }

  private nothing(): Change { return { target: this.kernel.target, values: {}, queues: null, copies: {}, cuts: [], queueOf: {}, costs: {} }; }
  private get isChanged(): boolean { return JSON.stringify(this.change) !== JSON.stringify(this.nothing()); }

  private again(change: Partial<Change>): void {
    const start = performance.now(), was = this.isNumbered;
    this.change = { ...this.change, ...change };
    this.played = play(this.replay, this.model, this.change);
    if (was !== this.isNumbered) this.own.bar = -1;
    this.show();
    this.root.dataset.milliseconds = String(performance.now() - start);
  }
  private show(): void {
    const { kernel, played } = this, now = played.end / played.perNs, by = now - kernel.totalNs;
    this.view.replace({ ...kernel, target: this.change.target, perNs: played.perNs, totalNs: now, lanes: played.lanes, path: played.path, bars: played.bars });
    const order = this.isChanged && !played.candidate.reorders && this.first.candidate.reorders ? " The order as written is the fastest then." : "";
    this.result.textContent = this.isChanged ? `${time(now)} instead of ${time(kernel.totalNs)}: ${by < 0 ? "−" : "+"}${time(Math.abs(by))} (${percent(Math.abs(by) / (kernel.totalNs || 1))}).${order}` : `${time(now)}. Nothing is changed.`;
    const focused = document.activeElement?.id;
    this.controls.replaceChildren(...[this.machine(), this.costs(), this.changes()].filter((part) => part !== null));
    this.showBar();
    if (focused) this.root.querySelector<HTMLElement>(`#${CSS.escape(focused)}`)?.focus();
  }

  private number(label: string, value: number, act: (value: number) => void, more: Record<string, any> = {}): HTMLElement {
    const id = `what-${label.replace(/\W+/g, "-")}`;
    return el("span", {}, el("label", { for: id }, `${label} `), el("input", { id, type: "number", value, style: "width: 7em", onchange: (e: Event) => {
      const input = e.target as HTMLInputElement;
      if (input.value !== "" && input.checkValidity()) act(+input.value); else input.value = String(value);
    }, ...more }));
  }
  private machine(): HTMLElement {
    const { replay, change, model, played } = this, most = model.targets[change.target]!.machine.dma_queues, queues = change.queues ?? most;
    const target = el("select", { id: "what-target", onchange: (e: Event) => this.again({ target: (e.target as HTMLSelectElement).value, values: {}, queues: null }) }, ...Object.entries(replay.candidates).map(([name, found]) =>
      el("option", { value: name, selected: name === change.target, disabled: "reason" in found }, "reason" in found ? `${name} (${found.reason})` : name)));
    const now = copiesOf(played.candidate, queues, change), names = [...new Set([...replay.tables.flatMap((t) => t.rotatable), ...Object.keys(now)])];
    const copies = (name: string) => this.number(`Copies of ${name}`, now[name] ?? 1, (n) => this.again({ copies: { ...change.copies, [name]: n } }), { min: 1, max: MOST_COPIES });
    const bar = el("p", { class: "bar" }, el("span", {}, el("label", { for: "what-target" }, "Target "), target), this.number("DMA queues", queues, (n) => this.again({ queues: n }), { min: 1, max: most }),
      el("button", { onclick: () => { this.change = this.nothing(); this.own.pick(-1); this.again({}); } }, "Reset"),
      names.length ? null : el("span", { class: "soft" }, "No buffer can have copies: none is allocated in a loop without a fixed address."));
    return el("div", {}, bar, names.length ? this.group("copies", "Copies of buffers", names.map(copies)) : null);
  }
  /** Controls that are folded away until they are opened. */
  private group(name: string, head: string, inputs: HTMLElement[]): HTMLElement {
    return el("details", { open: this.open.has(name), ontoggle: (e: Event) => { if ((e.target as HTMLDetailsElement).open) this.open.add(name); else this.open.delete(name); } }, el("summary", {}, head), el("div", { class: "bar" }, ...inputs));
  }
  private costs(): HTMLElement {
    const { model, change } = this, own = { ...model.targets[change.target]!.values, ...this.replay.values[change.target] };
    const unused = this.played.candidate.reorders ? ["LAUNCH", "LOAD_LATENCY"] : ["LAUNCH", "REORDER_HORIZON"];
    const inputs = Object.entries(model.constants).filter(([name]) => !unused.includes(name)).map(([name, { unit, work }]) => {
      const divides = name === "DMA_BANDWIDTH";
      return work ? el("span", { class: "soft" }, `${name}: not played in the page (instructions are made of it; see below)`)
        : el("span", {}, this.number(name, change.values[name] ?? own[name]!, (value) => this.again({ values: { ...change.values, [name]: value } }), { min: divides ? 0.001 : 0, step: "any" }), ` ${unit}`);
    });
    return this.group("costs", `Costs of ${change.target}`, inputs);
  }
  private name(call: number): string { const found = this.kernel.calls[call]!; return `${found.name ?? found.instruction}${found.at ? ` of line ${found.at[1]}` : ""}`; }
  /** The changes of single instructions, each with a button that takes it back. */
  private changes(): HTMLElement | null {
    const { cuts, costs, queueOf } = this.change, without = (of: Record<number, number>, call: string) => Object.fromEntries(Object.entries(of).filter(([key]) => key !== call));
    const item = (text: string, change: () => Partial<Change>) => el("li", {}, `${text} `, el("button", { onclick: () => this.again(change()) }, "Restore"));
    const items = [
      ...cuts.map(([call, other], n) => item(`${this.name(call)} does not wait for ${this.name(other)}.`, () => ({ cuts: cuts.filter((_, i) => i !== n) }))),
      ...Object.entries(costs!).map(([call, factor]) => item(`${this.name(+call)} takes ${factor} times as long.`, () => ({ costs: without(costs!, call) }))),
      ...Object.entries(queueOf).map(([call, queue]) => item(`${this.name(+call)} is on DMA queue ${queue}.`, () => ({ queueOf: without(queueOf, call) }))),
    ];
    return items.length ? el("ul", { class: "changes" }, ...items) : null;
  }

  /** What can be changed about the selected bar. */
  private showBar(): void {
    const { played: { bars, candidate }, change, model } = this, bar = this.own.bar;
    if (bar < 0) { this.bar.replaceChildren(el("p", { class: "soft" }, "Select a bar of the timeline to change its cost, its queue and what it waits for.")); return; }
    const why = bars.cause[bar]! < 0 ? "" : model.causes[bars.why[bar]!]!, call = bars.call[bar]!, lane = bars.lane[bar]! - model.lanes.length;
    const most = (change.queues ?? model.targets[change.target]!.machine.dma_queues) - 1;
    const wait = !why ? "The selected bar waits for nothing." : REMOVABLE.includes(why) ? null : `The wait of the selected bar cannot be removed: it is for its ${why}, which takes one instruction at a time.`;
    this.bar.replaceChildren(el("p", { class: "bar" }, wait === null ? el("button", { onclick: () => this.cut() }, "Remove the wait of the selected bar") : el("span", { class: "soft" }, wait),
      this.number("Time of the selected instruction, times", change.costs![call] ?? 1, (factor) => this.again({ costs: { ...change.costs, [call]: factor } }), { min: 0, max: MOST_FACTOR, step: "any" }),
      lane < 0 ? null : candidate.reorders ? el("span", { class: "soft" }, "Its queue cannot be chosen: in the order of the toolchain a DMA takes the queue that is free first.")
        : this.number("Queue of the selected DMA", lane, (queue) => this.again({ queueOf: { ...change.queueOf, [call]: queue } }), { min: 0, max: most })));
  }
  private cut(): void {
    const { bars } = this.played, bar = this.own.bar, cause = bar < 0 ? -1 : bars.cause[bar]!;
    if (cause < 0 || !REMOVABLE.includes(this.model.causes[bars.why[bar]!]!)) return;
    this.again({ cuts: [...this.change.cuts, [bars.call[bar]!, bars.call[cause]!]] });
  }
}

function rows(kernel: Kernel): (HTMLElement | null)[] {
  const change = (ns: number) => `${ns < kernel.totalNs ? "−" : "+"}${percent(Math.abs(ns - kernel.totalNs) / (kernel.totalNs || 1))}`;
  return Object.entries(HEADS).map(([kind, head]) => {
    const found = kernel.whatIf.filter((w) => w.kind === kind).sort((a, b) => (a.totalNs ?? Infinity) - (b.totalNs ?? Infinity));
    if (!found.length) return null;
    return el("section", {}, table(["change", "to", "time", "difference"], found.map((w) => w.totalNs === undefined ? [w.name, w.to, "not played", w.reason ?? ""] : [w.name, w.to, time(w.totalNs), change(w.totalNs)]), `${head}: from ${time(kernel.totalNs)}, played when the page was written`));
  });
}
