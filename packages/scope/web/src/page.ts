// Builds the page: tabs of views over one selection.
import { advice } from "./advice.ts";
import { compare, merged } from "./compare.ts";
import { type Comparison, type Document, type Kernel, inflate, parse } from "./data.ts";
import { Picture, bytes, count, el, percent, time } from "./dom.ts";
import { findings } from "./findings.ts";
import { memory } from "./memory.ts";
import { migration } from "./migration.ts";
import { Selection, rows } from "./model.ts";
import { play } from "./player.ts";
import { roofline } from "./roofline.ts";
import { schedule } from "./schedule.ts";
import { SourceView } from "./source.ts";
import { svg } from "./svg.ts";
import { TensorsView } from "./tensors.ts";
import { TimelineView } from "./timeline.ts";
import { tokens } from "./tokens.ts";
import { whatIf } from "./whatif.ts";

type View = (selection: Selection) => HTMLElement;
const VIEWS: [name: string, view: View, present: (d: Document) => boolean][] = [
  ["Compare", (s) => compare(s.document.comparison!), (d) => d.comparison !== undefined],
  ["Timeline", (s) => new TimelineView(s.now, s).root, (d) => d.kernels.length > 0],
  ["Source", (s) => new SourceView(s.now, s).root, (d) => d.kernels.length > 0],
  ["Memory", (s) => memory(s), (d) => d.kernels.length > 0],
  ["Tensors", (s) => new TensorsView(s.now, s).root, (d) => d.kernels.some((k) => k.tensors !== null)],
  ["Roofline", (s) => roofline(s), (d) => d.kernels.length > 0],
  ["What if", (s) => whatIf(s), (d) => d.kernels.length > 0],
  ["Advice", (s) => advice(s, open), (d) => d.kernels.length > 0],
  ["Tokens", (s) => tokens(s), (d) => d.orders.length > 0],
  ["Schedule", (s) => schedule(s.document), (d) => d.schedules.length > 0],
  ["Migration", (s) => migration(s.document), (d) => d.migrations.length > 0],
  ["Findings", (s) => findings(s, open), () => true],
];

/** What the address asks for: `#NAME` shows a view, `#NAME.svg` is its SVG text. */
const asked: { name?: string; svg?: string } =
  /^#(?<name>.*?)(?<svg>\.svg)?$/.exec(decodeURIComponent(location.hash))?.groups ?? {};

/** Shows the view of that name. */
function open(name: string): void {
  for (const tab of document.querySelectorAll<HTMLElement>("[role=tab]")) {
    if (tab.textContent === name) { tab.click(); tab.focus(); }
  }
}

/** As the views show it: what the toolchain makes of the kernel, or the kernel as written beside that. */
function times(k: Kernel): string {
  const made = `as the toolchain of NKI ${k.nki} makes it`;
  const changes = k.assumed.map(([name]) => name.replace(/_/g, " "));
  const form = k.mode === "device" ? `${made} (${changes.join(", ")})` : "as written, which the views show";
  const shown = `${time(k.totalNs)} ${form}, ${time(k.launchNs)} with the launch, on`;
  const device = k.whatIf.find((w) => w.kind === "mode" && w.name === "device")?.totalNs;
  return device === undefined ? shown : `${time(device)} ${made}; ${shown}`;
}

function work(k: Kernel): string {
  const shares = `MFU ${percent(k.mfu)}, MBU ${percent(k.mbu)}, DMA efficiency ${percent(k.dmaEfficiency)}`;
  const amount = `${count(k.numOps, "micro-op")}, ${bytes(k.hbmBytes)} of HBM`;
  return `${k.target}. ${amount}. ${shares}. Busiest: ${k.bottleneck}.`;
}

/** A kernel in the list of kernels. */
function entry(k: Kernel): string {
  const side = k.side ? `${k.side}: ` : "", form = k.mode === "device" ? "" : ", as written";
  const launches = k.launches > 1 ? `, ${k.launches} launches` : "";
  return `${side}${k.name} on ${k.target}${form}: ${time(k.totalNs)}${launches}`;
}

function head(selection: Selection): HTMLElement {
  const d = selection.document;
  const figures = el("p", { class: "figures" });
  const show = () => {
    figures.textContent = selection.now ? `${times(selection.now)} ${work(selection.now)}`
      : d.migrations.length ? `${count(d.migrations.length, "file")} migrated.` : "No kernel has a timeline.";
  };
  show();
  selection.addEventListener("kernel", show);
  const choose = el("select",
    { id: "kernel", onchange: (e: Event) => selection.show(+(e.target as HTMLSelectElement).value) },
    ...d.kernels.map((k, n) => el("option", { value: n }, entry(k))));
  return el("header", {}, ...d.errors.slice(0, 1).map((e) => el("pre", { class: "error" }, e)),
    d.kernels.length > 1 ? el("p", {}, el("label", { for: "kernel" }, "Kernel "), choose) : null, figures);
}

function build(doc: Document): HTMLElement {
  const selection = new Selection(doc);
  const texts = doc.texts.map(([title, text]): (typeof VIEWS)[number] =>
    [title, () => el("pre", { class: "scroll", tabindex: 0 }, text), () => true]);
  const views = [...VIEWS, ...texts].filter(([, , present]) => present(doc));
  const panels = views.map(([name], n) =>
    el("section",
      { role: "tabpanel", id: `panel-${n}`, "aria-labelledby": `tab-${n}`, "data-view": name, hidden: true }));
  const built = new Set<number>();
  const show = (n: number, focus = false) => {
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", String(i === n)); tab.tabIndex = i === n ? 0 : -1;
      panels[i]!.hidden = i !== n;
    });
    if (!built.has(n)) { built.add(n); panels[n]!.replaceChildren(views[n]![1](selection)); }
    if (focus) tabs[n]!.focus();
  };
  const tabs = views.map(([name], n) =>
    el("button", { role: "tab", id: `tab-${n}`, "aria-controls": `panel-${n}`, onclick: () => show(n) }, name));
  const list = el("div", { role: "tablist", "aria-label": "Views", onkeydown: (e: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (by) {
      e.preventDefault();
      show((tabs.findIndex((t) => t.tabIndex === 0) + by + tabs.length) % tabs.length, true);
    }
  } }, ...tabs);
  selection.addEventListener("kernel", () => { built.clear(); show(tabs.findIndex((t) => t.tabIndex === 0)); });
  const named = views.findIndex(([name]) => name === asked.name);
  show(Math.max(0, named));
  return el("main", {}, head(selection), list, ...panels);
}

async function start(): Promise<void> {
  const app = document.getElementById("app")!;
  try {
    const read = async <T = Document>(id: string) => parse<T>(await inflate(document.getElementById(id)!.textContent!));
    const one = await read("data");
    const doc = document.getElementById("data2")
      ? merged(one, await read("data2"), await read<Comparison>("comparison")) : one;
    app.replaceChildren(build(doc));
    (document.getElementById("summary") as HTMLDetailsElement).open = false;
    const panel = asked.svg && app.querySelector<HTMLElement>(`[role=tabpanel]:not([hidden])`);
    const picture = panel && panel.dataset.view === asked.name ? svg(panel) : "";
    if (panel) document.body.replaceChildren(el("pre", { id: "svg" }, picture));
  } catch (error) {
    app.replaceChildren(el("p", { class: "error" },
      `The views cannot be shown: ${error instanceof Error ? error.message : error}. The summary below is complete.`));
  }
  document.documentElement.dataset.ready = "true";
}
/** Paper is light: canvases are drawn for it, too. */
function onPaper(isOn: boolean): void {
  document.documentElement.classList.toggle("paper", isOn);
  Picture.redraw();
}
addEventListener("beforeprint", () => onPaper(true));
addEventListener("afterprint", () => onPaper(false));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Picture.redraw());

/** For tests, and for scripts in the console of a browser. */
(globalThis as any).nkiScope = { inflate, parse, play, rows };
void start();
