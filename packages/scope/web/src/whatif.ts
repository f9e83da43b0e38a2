// What if: the kernel is played again in the page with other costs, queues, buffers, waits.
// What the page does not play was played by the model when the page was written.
import type { Kernel, Model, Replay } from "./data.ts";
import { el, percent, table, time } from "./dom.ts";
import { Selection } from "./model.ts";
import { type Change, type Played, copiesOf, play } from "./player.ts";
import { TimelineView } from "./timeline.ts";

const HEADS: Record<string, string> = {
  target: "Another target", mode: "As the toolchain makes it, or as written", cost: "A cost that micro-ops are made of",
};
const REMOVABLE = ["data", "buffer"];
const MOST_COPIES = 64, MOST_FACTOR = 1000;

export function whatIf(selection: Selection): HTMLElement {
  const { replay } = selection.now;
  const player = "reason" in replay ? el("p", {}, `The page does not play this kernel: ${replay.reason}.`)
    : new Experiment(selection, replay, selection.document.model).root;
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
    this.root = el("div", {},
      el("p", {}, "Change a cost, the queues, the copies of a buffer or the target, select a bar to change its "
        + "instruction, or drag the handle of a wait away: the kernel is played again."),
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
    return a.candidate.table === b.candidate.table && a.candidate.reorders === b.candidate.reorders
      && a.bars.lane.length === b.bars.lane.length;
  }

  private nothing(): Change {
    return { target: this.kernel.target, values: {}, queues: null, copies: {}, cuts: [], queueOf: {}, costs: {} };
  }
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
    this.view.replace({ ...kernel, target: this.change.target, perNs: played.perNs, totalNs: now,
      lanes: played.lanes, path: played.path, bars: played.bars });
    const order = this.isChanged && !played.candidate.reorders && this.first.candidate.reorders
      ? " The order as written is the fastest then." : "";
    const share = percent(Math.abs(by) / (kernel.totalNs || 1));
    const change = `${by < 0 ? "−" : "+"}${time(Math.abs(by))} (${share})`;
    this.result.textContent = this.isChanged ? `${time(now)} instead of ${time(kernel.totalNs)}: ${change}.${order}`
      : `${time(now)}. Nothing is changed.`;
    const focused = document.activeElement?.id;
    this.controls.replaceChildren(...[this.machine(), this.costs(), this.changes()].filter((part) => part !== null));
    this.showBar();
    if (focused) this.root.querySelector<HTMLElement>(`#${CSS.escape(focused)}`)?.focus();
  }

  private number(
    label: string, value: number, act: (value: number) => void, more: Record<string, any> = {},
  ): HTMLElement {
    const id = `what-${label.replace(/\W+/g, "-")}`;
    const onchange = (e: Event) => {
      const input = e.target as HTMLInputElement;
      if (input.value !== "" && input.checkValidity()) act(+input.value); else input.value = String(value);
    };
    return el("span", {}, el("label", { for: id }, `${label} `),
      el("input", { id, type: "number", value, style: "width: 7em", onchange, ...more }));
  }
  private machine(): HTMLElement {
    const { replay, change, model, played } = this;
    const most = model.targets[change.target]!.machine.dma_queues, queues = change.queues ?? most;
    const onchange = (e: Event) =>
      this.again({ target: (e.target as HTMLSelectElement).value, values: {}, queues: null });
    const option = (value: string, reason?: string) =>
      el("option", { value, selected: value === change.target, disabled: reason !== undefined },
        reason === undefined ? value : `${value} (${reason})`);
    const target = el("select", { id: "what-target", onchange }, ...Object.entries(replay.candidates)
      .map(([name, found]) => option(name, "reason" in found ? found.reason : undefined)));
    const now = copiesOf(played.candidate, queues, change);
    const names = [...new Set([...replay.tables.flatMap((t) => t.rotatable), ...Object.keys(now)])];
    const copies = (name: string) => this.number(`Copies of ${name}`, now[name] ?? 1,
      (n) => this.again({ copies: { ...change.copies, [name]: n } }), { min: 1, max: MOST_COPIES });
    const bar = el("p", { class: "bar" }, el("span", {}, el("label", { for: "what-target" }, "Target "), target),
      this.number("DMA queues", queues, (n) => this.again({ queues: n }), { min: 1, max: most }),
      el("button", { onclick: () => { this.change = this.nothing(); this.own.pick(-1); this.again({}); } }, "Reset"),
      names.length ? null : el("span", { class: "soft" },
        "No buffer can have copies: none is allocated in a loop without a fixed address."));
    return el("div", {}, bar, names.length ? this.group("copies", "Copies of buffers", names.map(copies)) : null);
  }
  /** Controls that are folded away until they are opened. */
  private group(name: string, head: string, inputs: HTMLElement[]): HTMLElement {
    const ontoggle = (e: Event) => {
      if ((e.target as HTMLDetailsElement).open) this.open.add(name); else this.open.delete(name);
    };
    return el("details", { open: this.open.has(name), ontoggle },
      el("summary", {}, head), el("div", { class: "bar" }, ...inputs));
  }
  private costs(): HTMLElement {
    const { model, change } = this,
      own = { ...model.targets[change.target]!.values, ...this.replay.values[change.target] };
    const unused = this.played.candidate.reorders ? ["LAUNCH", "LOAD_LATENCY"] : ["LAUNCH", "REORDER_HORIZON"];
    const input = ([name, { unit, work }]: [string, Model["constants"][string]]) => {
      const reason = "not played in the page (instructions are made of it; see below)";
      if (work) return el("span", { class: "soft" }, `${name}: ${reason}`);
      const set = (value: number) => this.again({ values: { ...change.values, [name]: value } });
      const min = name === "DMA_BANDWIDTH" ? 0.001 : 0;
      const value = change.values[name] ?? own[name]!;
      return el("span", {}, this.number(name, value, set, { min, step: "any" }), ` ${unit}`);
    };
    const inputs = Object.entries(model.constants).filter(([name]) => !unused.includes(name)).map(input);
    return this.group("costs", `Costs of ${change.target}`, inputs);
  }
  private name(call: number): string {
    const found = this.kernel.calls[call]!;
    return `${found.name ?? found.instruction}${found.at ? ` of line ${found.at[1]}` : ""}`;
  }
  /** The changes of single instructions, each with a button that takes it back. */
  private changes(): HTMLElement | null {
    const { cuts, costs, queueOf } = this.change;
    const without = (of: Record<number, number>, call: string) =>
      Object.fromEntries(Object.entries(of).filter(([key]) => key !== call));
    const item = (text: string, change: () => Partial<Change>) =>
      el("li", {}, `${text} `, el("button", { onclick: () => this.again(change()) }, "Restore"));
    const items = [
      ...cuts.map(([call, other], n) => item(`${this.name(call)} does not wait for ${this.name(other)}.`,
        () => ({ cuts: cuts.filter((_, i) => i !== n) }))),
      ...Object.entries(costs!).map(([call, factor]) => item(`${this.name(+call)} takes ${factor} times as long.`,
        () => ({ costs: without(costs!, call) }))),
      ...Object.entries(queueOf).map(([call, queue]) => item(`${this.name(+call)} is on DMA queue ${queue}.`,
        () => ({ queueOf: without(queueOf, call) }))),
    ];
    return items.length ? el("ul", { class: "changes" }, ...items) : null;
  }

  /** What can be changed about the selected bar. */
  private showBar(): void {
    const { played: { bars, candidate }, change, model } = this, bar = this.own.bar;
    if (bar < 0) {
      this.bar.replaceChildren(el("p", { class: "soft" },
        "Select a bar of the timeline to change its cost, its queue and what it waits for."));
      return;
    }
    const call = bars.call[bar]!, soft = (text: string) => el("span", { class: "soft" }, text);
    const why = bars.cause[bar]! < 0 ? "" : model.causes[bars.why[bar]!]!;
    const remove = () => el("button", { onclick: () => this.cut() }, "Remove the wait of the selected bar");
    const wait = REMOVABLE.includes(why) ? remove() : soft(!why ? "The selected bar waits for nothing."
      : `The wait of the selected bar cannot be removed: it is for its ${why}, which takes one instruction at a time.`);
    const factor = this.number("Time of the selected instruction, times", change.costs![call] ?? 1,
      (times) => this.again({ costs: { ...change.costs, [call]: times } }), { min: 0, max: MOST_FACTOR, step: "any" });
    const lane = bars.lane[bar]! - model.lanes.length;
    const most = (change.queues ?? model.targets[change.target]!.machine.dma_queues) - 1;
    const queue = lane < 0 ? null : candidate.reorders
      ? soft("Its queue cannot be chosen: in the order of the toolchain a DMA takes the queue that is free first.")
      : this.number("Queue of the selected DMA", lane,
        (number) => this.again({ queueOf: { ...change.queueOf, [call]: number } }), { min: 0, max: most });
    this.bar.replaceChildren(el("p", { class: "bar" }, wait, factor, queue));
  }
  private cut(): void {
    const { bars } = this.played, bar = this.own.bar, cause = bar < 0 ? -1 : bars.cause[bar]!;
    if (cause < 0 || !REMOVABLE.includes(this.model.causes[bars.why[bar]!]!)) return;
    this.again({ cuts: [...this.change.cuts, [bars.call[bar]!, bars.call[cause]!]] });
  }
}

/** A mode is named as in text; costs and targets keep their names. */
const words = (name: string): string =>
  ({ as_written: "as written", device: "as the toolchain makes it" } as Record<string, string>)[name] ?? name;

function rows(kernel: Kernel): (HTMLElement | null)[] {
  const change = (ns: number) =>
    `${ns < kernel.totalNs ? "−" : "+"}${percent(Math.abs(ns - kernel.totalNs) / (kernel.totalNs || 1))}`;
  return Object.entries(HEADS).map(([kind, head]) => {
    const found = kernel.whatIf.filter((w) => w.kind === kind)
      .sort((a, b) => (a.totalNs ?? Infinity) - (b.totalNs ?? Infinity));
    if (!found.length) return null;
    const cells = found.map(({ name, to, totalNs, reason }) => totalNs === undefined
      ? [name, words(to), "not played", reason ?? ""] : [words(name), words(to), time(totalNs), change(totalNs)]);
    return el("section", {}, table(["change", "to", "time", "difference"], cells,
      `${head}: from ${time(kernel.totalNs)}, played when the page was written`));
  });
}
