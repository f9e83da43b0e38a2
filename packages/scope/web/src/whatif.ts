// What if: the kernel is played again in the page with other costs, queues, buffers, waits.
// What the page does not play was played by the model when the page was written.
import type { Kernel, Model, Replay } from "./data.ts";
import { el, percent, table, time } from "./dom.ts";
import type { Selection } from "./model.ts";
import { type Change, type Played, play } from "./player.ts";
import { TimelineView } from "./timeline.ts";

const HEADS: Record<string, string> = { target: "Another target", mode: "As the toolchain makes it, or as written", cost: "A cost that micro-ops are made of" };
const REMOVABLE = ["data", "buffer"];
const MOST_COPIES = 16;

export function whatIf(selection: Selection): HTMLElement {
  const { replay } = selection.now;
  const player = "reason" in replay ? el("p", {}, `The page does not play this kernel: ${replay.reason}.`) : new Experiment(selection, replay, selection.document.model).root;
  return el("div", {}, player, ...rows(selection.now));
}

/** The changes, the end that they give, and its timeline. */
class Experiment {
  readonly root: HTMLElement;
  private readonly kernel: Kernel;
  private change!: Change;
  private played!: Played;
  private readonly view: TimelineView;
  private readonly result = el("p", { class: "details", "aria-live": "polite" });
  private readonly controls = el("div", {});
  private readonly bar = el("div", {});

  constructor(private readonly selection: Selection, private readonly replay: Replay, private readonly model: Model) {
    this.kernel = selection.now;
    this.change = this.nothing();
    this.played = play(replay, model, this.change);
    this.view = new TimelineView(this.kernel, selection, () => this.cut());
    this.root = el("div", {}, el("p", {}, "Change a cost, the queues, the copies of a buffer or the target, or drag the handle of a wait away: the kernel is played again."),
      this.controls, this.bar, this.result, this.view.root);
    selection.follow(() => this.showBar());
    this.show();
  }

  private nothing(): Change { return { target: this.kernel.target, values: {}, queues: null, copies: {}, cuts: [], queueOf: {} }; }
  private get isChanged(): boolean { return JSON.stringify(this.change) !== JSON.stringify(this.nothing()); }

  private again(change: Partial<Change>): void {
    this.change = { ...this.change, ...change };
    const start = performance.now();
    this.played = play(this.replay, this.model, this.change);
    this.root.dataset.milliseconds = String(performance.now() - start);
    this.show();
  }
  private show(): void {
    const { kernel, played } = this, now = played.end / played.perNs, by = now - kernel.totalNs;
    this.view.replace({ ...kernel, target: this.change.target, perNs: played.perNs, totalNs: now, lanes: played.lanes, path: played.path, bars: { ...kernel.bars, ...played.bars } });
    this.result.textContent = this.isChanged ? `${time(now)} instead of ${time(kernel.totalNs)}: ${by < 0 ? "−" : "+"}${time(Math.abs(by))} (${percent(Math.abs(by) / (kernel.totalNs || 1))}).` : `${time(now)}. Nothing is changed.`;
    const open = this.controls.querySelector("details")?.open;
    const focused = document.activeElement?.id;
    this.controls.replaceChildren(...[this.machine(), this.costs(open), this.cuts()].filter((part) => part !== null));
    if (focused) this.controls.querySelector<HTMLElement>(`#${CSS.escape(focused)}`)?.focus();
    this.showBar();
  }

  private number(label: string, value: number, act: (value: number) => void, more: Record<string, any> = {}): HTMLElement {
    const id = `what-${label.replace(/\W+/g, "-")}`;
    return el("span", {}, el("label", { for: id }, `${label} `), el("input", { id, type: "number", value, style: "width: 7em", onchange: (e: Event) => {
      const input = e.target as HTMLInputElement;
      if (input.value !== "" && input.checkValidity()) act(+input.value); else input.value = String(value);
    }, ...more }));
  }
  private machine(): HTMLElement {
    const { replay, change, model, selection } = this, most = model.targets[change.target]!.machine.dma_queues;
    const target = el("select", { id: "what-target", onchange: (e: Event) => this.again({ target: (e.target as HTMLSelectElement).value, values: {}, queues: null }) }, ...Object.entries(replay.works).map(([name, works]) =>
      el("option", { value: name, selected: name === change.target, disabled: "reason" in works }, "reason" in works ? `${name} (${works.reason})` : name)));
    const copies = (name: string) => this.number(`Copies of ${name}`, change.copies[name] ?? 1, (n) => this.again({ copies: { ...change.copies, [name]: n } }), { min: 1, max: MOST_COPIES });
    return el("p", { class: "bar" }, el("span", {}, el("label", { for: "what-target" }, "Target "), target), this.number("DMA queues", change.queues ?? most, (queues) => this.again({ queues }), { min: 1, max: most }),
      ...replay.rotatable.slice(0, 12).map(copies), el("button", { onclick: () => { this.change = this.nothing(); selection.pick(-1); this.again({}); } }, "Reset"),
      replay.rotatable.length ? null : el("span", { class: "soft" }, "No buffer can have copies: none is allocated in a loop without a fixed address."));
  }
  private costs(open = false): HTMLElement {
    const { model, change } = this, own = model.targets[change.target]!.values;
    const inputs = Object.entries(model.constants).filter(([name]) => name !== "LAUNCH" && name !== "REORDER_HORIZON").map(([name, { unit, work }]) => {
      const divides = name === "DMA_BANDWIDTH";
      return work ? el("span", { class: "soft" }, `${name}: not played in the page (instructions are made of it; see below)`)
        : el("span", {}, this.number(name, change.values[name] ?? own[name]!, (value) => this.again({ values: { ...change.values, [name]: value } }), { min: divides ? 0.001 : 0, step: "any" }), ` ${unit}`);
    });
    return el("details", { open }, el("summary", {}, `Costs of ${change.target}`), el("div", { class: "bar" }, ...inputs));
  }
  private cuts(): HTMLElement | null {
    const name = (site: number) => { const call = this.kernel.calls[this.replay.calls[site]!]; return call ? call.name ?? call.instruction : "an instruction"; };
    if (!this.change.cuts.length) return null;
    return el("ul", {}, ...this.change.cuts.map(([site, other], n) => el("li", {}, `${name(site)} does not wait for ${name(other)}. `,
      el("button", { onclick: () => this.again({ cuts: this.change.cuts.filter((_, i) => i !== n) }) }, "Restore"))));
  }

  /** What can be changed about the selected bar. */
  private showBar(): void {
    const { bars } = this.played, bar = this.selection.bar, why = bar < 0 ? "" : this.model.causes[bars.why[bar]!]!;
    if (bar < 0 || bars.cause[bar]! < 0) { this.bar.replaceChildren(el("p", { class: "soft" }, "Select a bar of the timeline to change what it waits for.")); return; }
    const site = bars.site[bar]!, lane = bars.lane[bar]! - this.model.lanes.length;
    this.bar.replaceChildren(el("p", { class: "bar" }, REMOVABLE.includes(why) ? el("button", { onclick: () => this.cut() }, "Remove the wait of the selected bar") : el("span", { class: "soft" }, `The wait of the selected bar cannot be removed: it is for its ${why}, which takes one instruction at a time.`),
      lane >= 0 ? this.number("Queue of the selected DMA", lane, (queue) => this.again({ queueOf: { ...this.change.queueOf, [site]: queue } }), { min: 0, max: (this.change.queues ?? this.model.targets[this.change.target]!.machine.dma_queues) - 1 }) : null));
  }
  private cut(): void {
    const { bars } = this.played, bar = this.selection.bar, cause = bars.cause[bar]!;
    if (bar < 0 || cause < 0 || !REMOVABLE.includes(this.model.causes[bars.why[bar]!]!)) return;
    this.again({ cuts: [...this.change.cuts, [bars.site[bar]!, bars.site[cause]!]] });
  }
}

function rows(kernel: Kernel): (HTMLElement | null)[] {
  const change = (ns: number) => `${ns < kernel.totalNs ? "−" : "+"}${percent(Math.abs(ns - kernel.totalNs) / (kernel.totalNs || 1))}`;
  return Object.entries(HEADS).map(([kind, head]) => {
    const found = kernel.whatIf.filter((w) => w.kind === kind).sort((a, b) => (a.totalNs ?? Infinity) - (b.totalNs ?? Infinity));
    if (!found.length) return null;
    return el("section", {}, el("h3", {}, head), table(["change", "to", "time", "difference"], found.map((w) => w.totalNs === undefined ? [w.name, w.to, "not played", w.reason ?? ""] : [w.name, w.to, time(w.totalNs), change(w.totalNs)]), `${head}: from ${time(kernel.totalNs)}, played when the page was written`));
  });
}
