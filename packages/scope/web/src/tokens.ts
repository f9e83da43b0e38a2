// Orders between operations: kept, implied, removed, each with its witness; an end selects its line.
import type { At, Order, Orders } from "./data.ts";
import { el, table } from "./dom.ts";
import type { Selection } from "./model.ts";

const STATES: [Order["status"], string][] =
  [["kept", "kept: a wait is needed"], ["implied", "implied by kept ones"], ["removed", "removed: no conflict exists"]];
const MOST_ROWS = 500;

export function tokens(selection: Selection): HTMLElement {
  return el("div", {}, ...selection.document.orders.flatMap((orders, n) => [...view(selection, orders, n)]));
}

function view(selection: Selection, orders: Orders, n: number): HTMLElement[] {
  const { files } = selection.document, shown = new Set<string>(["kept"]), box = el("div", {});
  const end = (name: string, at: At) => at === null ? name
    : el("button", { onclick: () =>
    selection.pickLine(at.join(":"), selection.now
    ? selection.now.bars.call.findIndex((c) => selection.now.calls[c]!.at?.join(":") === at.join(":")) : -1) },
    `${name} (${files[at[0]]?.path.split("/").pop()}:${at[1]})`);
  const draw = () => {
    const rows = orders.rows.filter((r) => shown.has(r.status));
    box.replaceChildren(table(["order", "first", "then", "when", "witness"],
      rows.slice(0, MOST_ROWS)
      .map((r) => [r.status, end(r.ends[0], r.at[0]), end(r.ends[1], r.at[1]), r.when,
      el("div", {}, ...r.why.map((line) => el("div", {}, line)))]), `${rows.length} orders`),
      rows.length > MOST_ROWS
        ? el("p", { class: "soft" }, `The first ${MOST_ROWS} are shown; the summary below has all.`) : "");
  };
  const choices = STATES.map(([status, text]) =>
    el("span", {}, el("input",
    { type: "checkbox", id: `order-${n}-${status}`, checked: shown.has(status),
    onchange: (e: Event) =>
    { if ((e.target as HTMLInputElement).checked) shown.add(status); else shown.delete(status); draw(); } }),
    el("label", { for: `order-${n}-${status}` }, ` ${orders.rows.filter((r) => r.status === status).length} ${text}`)));
  draw();
  return [el("p", { class: "bar" }, ...choices), box,
    orders.rules.length ? table(["pairs that need no order", "because", "rule"],
      [...orders.rules].sort((a, b) => b[2] - a[2]).map(([rule, says, count]) => [count, says, rule]),
      "Pairs of accesses without an order, by rule") : el("p", {}, "No pair of accesses was proved to need no order.")];
}
