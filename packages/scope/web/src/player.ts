// Plays a program again, in program order, as neuroncore.timeline does: to the tick.
// Names, numbers and constants come from `Model`, the table that Python wrote into the page.
import type { Column, Candidate, Model, Replay, Table, Work } from "./data.ts";
import { Gaps, commonRoom } from "./gaps.ts";
import { Lane, LooseLane } from "./lanes.ts";
import { type Ready, Regions } from "./regions.ts";

/** What is other than in the kernel as its toolchain makes it. Calls go by their numbers in the kernel. */
export interface Change {
  target: string;
  /** Constants that are not those of the target. */
  values: Record<string, number>;
  queues: number | null;
  /** Buffer → how many copies of it are used in turn. */
  copies: Record<string, number>;
  /** Pairs of calls: the first does not wait for the second. */
  cuts: [number, number][];
  /** Call → its DMA queue. Where transfers take any queue it changes nothing. */
  queueOf: Record<number, number>;
  /** Call → what its time on its engine, or on the DMA engines, is multiplied by. */
  costs?: Record<number, number>;
}
export interface LaneUse { busy: number; stalls: Record<string, number> }
export interface Played {
  perNs: number; end: number;
  /** Which candidate of the target was the fastest. */
  candidate: Candidate;
  bars: Record<"site" | "lane" | "kind" | "start" | "busy" | "end" | "cause" | "why" | "call" | "instance" | "bytes",
    Column>;
  lanes: Record<string, LaneUse>;
  path: { bar: Column; ticks: Column };
}

const [LANE, RESOURCE] = [2, 3], [WEIGHTS, MULTIPLY, PASS, TABLE, TRANSFER] = [0, 1, 2, 3, 4];

/** To the nearest whole number, halves to the even one, as Python rounds. */
const round = (x: number): number => { const up = Math.round(x); return x % 1 === 0.5 && up % 2 ? up - 1 : up; };

type Site = Work & { number: number; own: Lane; step: (site: Site, at: number) => void; intervals: number[];
  gaps: Gaps[]; unit: Gaps | null; length: number; share: number; gap: number; tail: number; begin: number };

class Player {
  private readonly bars: number[][] = [[], [], [], [], [], [], [], [], []];
  private instruction = 0;
  private readonly replay: Table;
  private readonly lanes: Lane[];
  private readonly perNs: number;
  private readonly perCycle: number[];
  private readonly latency: number[];
  private readonly values: Record<string, number>;
  private readonly machine: Model["targets"][string]["machine"];
  private readonly firstQueue: number;
  private readonly regions: Regions;
  private readonly bandwidth = new Gaps();
  private readonly generators: Record<string, Gaps> = { gpsimd: new Gaps(), sync: new Gaps(), scalar: new Gaps() };
  private readonly ports = new Map<string, Gaps>();
  private readonly weights: Ready = { time: 0, bar: -1, why: LANE };
  private readonly ready: Ready = { time: 0, bar: -1, why: LANE };
  private readonly semaphore: number;
  private weightsFree = 0; private multiplyStart = 0; private table: string | null = null;
  private tableThere = 0; private tableBar = -1;
  private since: number; private warmBusy = 0; private cold = false;
  private readonly window: number;

  constructor(of: Replay, private readonly candidate: Candidate, private readonly model: Model,
    private readonly change: Change) {
    const target = model.targets[change.target]!, ghz = target.machine.clock_ghz;
    this.replay = of.tables[candidate.table]!;
    this.values = { ...target.values, ...of.values[change.target], ...change.values };
    this.machine = target.machine;
    this.perNs = 2 * ghz.tensor!;
    this.perCycle = model.lanes.map((lane) => round(this.perNs / ghz[lane]!));
    this.firstQueue = model.lanes.length;
    this.latency = model.latency.map((name, lane) => this.cycles(lane, this.values[name]!));
    this.semaphore = this.ticks("SEMAPHORE");
    this.window = this.ticks("WARM_UP");
    this.since = -this.window;
    const queues = change.queues ?? target.machine.dma_queues, horizon = this.ticks("REORDER_HORIZON");
    this.lanes = Array.from({ length: this.firstQueue + queues },
      (_, number) => candidate.reorders && number < this.firstQueue ? new LooseLane(number, horizon)
      : new Lane(number));
    const { tracks, calls } = this.replay, copies = new Map<number, number>(), sites = this.bars[0]!;
    for (const [name, n] of Object.entries(copiesOf(candidate, queues,
      change))) if (tracks.includes(name)) copies.set(tracks.indexOf(name), n);
    const key = (call: number, other: number) => 2 ** 26 * call + other,
      cuts = new Set(change.cuts.map(([call, other]) => key(call, other)));
    this.regions = new Regions(this.replay, copies, cuts.size
      ? (site, bar) => bar >= 0 && cuts.has(key(calls[site]!, calls[sites[bar]!]!)) : null);
  }

  private ns(time: number): number { return round(time * this.perNs); }
  private ticks(name: string): number { return this.ns(this.values[name]!); }
  private cycles(lane: number, count: number): number { return round(count * this.perCycle[lane]!); }

  /** The sites, ready to be played. */
  private sites(): Site[] {
    const { works, reorders } = this.candidate, [pass, matmul] = reorders ? [this.loosePass, this.looseMatmul]
      : [this.pass, this.matmul];
    let transfers = 0;
    return Array.from(works.of, (of, number) => {
      const work = works.each[of]!,
        site = { ...work, number, gaps: [], intervals: [], unit: null, length: 0, share: 0, gap: 0, tail: 0,
        begin: 0 } as unknown as Site;
      if (work.kind === TRANSFER) return this.transfer(site, transfers++);
      site.own = this.lanes[work.lane]!;
      site.step = work.kind === PASS ? pass : matmul;
      site.intervals = (work.kind === PASS ? [work.interval!] : work.passes!.flat())
        .map((cycles) => this.cycles(work.lane, cycles * this.factor(number)));
      site.gaps = (work.ports ?? []).map((name) => this.ports.get(name) ?? this.ports.set(name, new Gaps()).get(name)!);
      return site;
    });
  }
  private factor(site: number): number { return this.change.costs?.[this.replay.calls[site]!] ?? 1; }
  private transfer(site: Site, number: number): Site {
    const { values, machine } = this, queues = this.lanes.length - this.firstQueue;
    const queue = this.candidate.reorders ? 0
      : (this.change.queueOf[this.replay.calls[site.number]!] ?? number) % queues, unit = site.generators![queue % 2];
    site.own = this.lanes[this.firstQueue + queue]!;
    site.unit = unit ? this.generators[unit]! : null;
    const [engines, load, busy] = site.partitions ? this.onChip(site) : this.withinHbm(site);
    site.length = Math.max(1, round(Math.max(1, this.ns(busy)) * this.factor(site.number)));
    const idle = this.ticks("DMA_GAP") * engines / machine.dma_engines;
    site.share = Math.max(1, round(site.length * load / machine.dma_engines + idle));
    site.gap = round(idle);
    site.tail = this.ns(values.DMA_STAGGER! * (engines - 1));
    site.begin = this.ticks(site.begins!);
    site.step = this.dma;
    return site;
  }
  /** The DMA engines of a transfer, the work of all over that of the busiest, and its time in ns. */
  private onChip(site: Site): [number, number, number] {
    const { machine } = this, partitions = site.partitions!, group = machine.dma_engine_partitions;
    const groups = Math.ceil(partitions / group), engines = Math.min(machine.dma_engines, groups);
    const busiest = Math.min(partitions, group * Math.ceil(groups / engines));
    const pieces = Math.max(site.descriptors!, partitions);
    const each = this.descriptor(site.run! * site.descriptors! / pieces);
    return [engines, partitions / busiest, busiest * (pieces / partitions) * each];
  }
  private withinHbm(site: Site): [number, number, number] {
    const moved = site.run! * site.descriptors!, stagger = this.values.DMA_STAGGER!;
    let [engines, first, least] = [1, Infinity, 0];
    for (let n = 1; n <= this.machine.dma_engines; n++) {
      const pieces = Math.max(site.descriptors!, n), busy = pieces / n * this.descriptor(moved / pieces);
      if (busy + stagger * (n - 1) < first) [engines, first, least] = [n, busy + stagger * (n - 1), busy];
    }
    return [engines, engines, least];
  }
  private descriptor(bytes: number): number {
    const { values } = this;
    return Math.max(bytes / values.DMA_BANDWIDTH! + values.DMA_DESCRIPTOR!, values.DMA_DESCRIPTOR_MIN!);
  }

  play(): Played {
    const { executed, made } = this.replay, sites = this.sites();
    for (let at = 0, m = 0; at < executed.length; this.instruction++) {
      for (; m < made.before.length && made.before[m]! <= this.instruction; m++) this.regions.made(made.track[m]!);
      const site = sites[executed[at]!]!;
      site.step.call(this, site, at + 1);
      at += 1 + site.reads + site.writes + site.adds;
    }
    return this.result();
  }

  private add(site: number, lane: number, kind: number, start: number, free: number, end: number, cause: number,
    why: number): number {
    const [sites, lanes, kinds, starts, busy, ends, causes, whys, instances] =
      this.bars as [number[], number[], number[], number[], number[], number[], number[], number[], number[]];
    sites.push(site); lanes.push(lane); kinds.push(kind); starts.push(start);
    busy.push(free - start); ends.push(end); causes.push(cause); whys.push(why);
    instances.push(this.instruction);
    return sites.length - 1;
  }
  /** The cause of a wait and the lane that was waited for, as one number. */
  private reason(cause: number, why: number): number {
    return 16 * why + 1 + (why === RESOURCE || cause < 0 ? -1 : Math.min(this.bars[1]![cause]!, this.firstQueue));
  }
  private stall(lane: Lane, start: number, cause: number, why: number): void {
    if (lane.last >= 0 && start > lane.free) lane.stall(this.reason(cause, why), start - lane.free);
  }

  private pass(site: Site, at: number): void {
    const { ready, regions } = this, lane = site.own, until = at + site.reads + site.writes + site.adds,
      interval = site.intervals[0]!;
    regions.look(ready, site.number, lane.number, at, until, site.reads, site.adds);
    if (site.table !== null && site.table !== this.table) this.loadTable(site);
    let [start, cause, why] = [lane.free, lane.last, LANE];
    if (ready.time > start) { start = ready.time; cause = ready.bar; why = ready.why; }
    if (site.gaps.length) {
      const moved = commonRoom(site.gaps, start, interval);
      if (moved > start) { start = moved; why = RESOURCE; }
      for (const port of site.gaps) port.reserve(start, interval);
    }
    const free = start + interval, end = free + this.latency[lane.number]!;
    this.stall(lane, start, cause, why);
    const bar = this.add(site.number, lane.number, PASS, start, free, end, cause, why);
    lane.free = free; lane.last = bar; lane.end = end; lane.busy += interval;
    regions.done(lane.number, at, until, site.reads, end + this.semaphore, bar);
  }
  private loadTable(site: Site): void {
    const { ready } = this, lane = site.own, loading = this.cycles(lane.number, this.values.ACT_TABLE_LOAD!);
    const waits = ready.time > lane.free, start = waits ? ready.time : lane.free;
    const [cause, why] = waits ? [ready.bar, ready.why] : [lane.last, LANE], free = start + loading;
    if (!(lane instanceof LooseLane)) this.stall(lane, start, cause, why);
    const bar = this.add(site.number, lane.number, TABLE, start, free, free, cause, why);
    if (lane instanceof LooseLane) lane.occupy(start, loading, bar, this.reason(cause, why));
    lane.last = this.tableBar = bar; lane.free = this.tableThere = free; lane.busy += loading;
    this.table = site.table!;
  }

  /** How long a multiply that begins at `start` occupies the engine: twice as long where it is cold. */
  private warm(start: number, interval: number): number {
    if (!this.window) return interval;
    const elapsed = start - this.since;
    if (elapsed >= this.window) {
      this.cold = 2 * this.warmBusy < elapsed || !this.warmBusy; this.since = start;
      this.warmBusy = 0;
    }
    if (this.cold) interval *= 2;
    this.warmBusy += interval;
    return interval;
  }
  private matmul(site: Site, at: number): void {
    const { weights, ready, regions } = this, lane = site.own, split = at + Math.min(1, site.reads),
      until = at + site.reads + site.writes + site.adds;
    const reads = site.reads - (split - at), latency = this.latency[lane.number]!,
      loadLatency = this.cycles(lane.number, this.values.LOAD_LATENCY!);
    let start = Math.max(this.weightsFree, this.multiplyStart), filled = start, begin = start, end = start;
    regions.look(weights, site.number, lane.number, at, split, split - at, 0);
    regions.look(ready, site.number, lane.number, split, until, reads, site.adds);
    for (let n = 0; n < site.intervals.length; n += 2) {
      let [cause, why] = [lane.last, LANE];
      if (weights.time > start) { start = weights.time; cause = weights.bar; why = weights.why; }
      filled = start + site.intervals[n]!;
      begin = lane.free;
      let [behind, by] = [cause, lane.last];
      const load = this.add(site.number, lane.number, WEIGHTS, start, filled, filled + loadLatency, cause, why);
      if (filled > begin) { begin = filled; by = load; } else why = LANE;
      if (ready.time > begin) { begin = ready.time; by = behind = ready.bar; why = ready.why; }
      const interval = this.warm(begin, site.intervals[n + 1]!);
      lane.busy += interval;
      end = begin + interval;
      this.stall(lane, begin, behind, why);
      lane.last = this.add(site.number, lane.number, MULTIPLY, begin, end, end + latency, by, why);
      lane.free = end;
      start = Math.max(filled, begin);
    }
    this.weightsFree = filled; this.multiplyStart = begin;
    lane.end = end = end + latency;
    regions.done(lane.number, at, split, split - at, end + this.semaphore, lane.last);
    regions.done(lane.number, split, until, reads, end + this.semaphore, lane.last);
  }

  private dma(site: Site, at: number): void {
    const { ready, regions } = this, { reorders } = this.candidate, until = at + site.reads + site.writes + site.adds;
    const lane = reorders ? this.freeQueue() : site.own, own = reorders ? this.firstQueue : lane.number;
    regions.look(ready, site.number, own, at, until, site.reads, site.adds, reorders ? 0 : -1);
    let [trigger, cause, why] = [lane.free, lane.last, LANE];
    if (ready.time > trigger) { trigger = ready.time; cause = ready.bar; why = ready.why; }
    if (site.unit) {
      const slot = site.unit.reserve(trigger, this.ticks("DMA_ISSUE"));
      if (slot > trigger) { trigger = slot; why = RESOURCE; }
    }
    const begin = trigger + site.begin,
      end = Math.max(this.bandwidth.fill(begin, site.share) - site.gap, begin + site.length);
    const complete = end + site.tail + this.ticks("DMA_COMPLETION");
    this.stall(lane, trigger, cause, why);
    const bar = this.add(site.number, lane.number, TRANSFER, trigger, end, complete, cause, why);
    lane.free = trigger + this.ticks("DMA_QUEUE_FLOOR"); lane.last = bar; lane.busy += site.length;
    lane.end = Math.max(lane.end, complete);
    regions.done(own, at, until, site.reads, complete + this.ticks("DMA_TO_CONSUMER"), bar);
  }
  /** The queue that is free first; of several the one whose last transfer is the earliest. */
  private freeQueue(): Lane {
    let best = this.lanes[this.firstQueue]!;
    for (let n = this.firstQueue + 1; n < this.lanes.length; n++) {
      const lane = this.lanes[n]!;
      if (lane.free < best.free || (lane.free === best.free && lane.last < best.last)) best = lane;
    }
    return best;
  }

  // As the compiler reorders: in the first gap of the engine behind the operands.
  private loosePass(site: Site, at: number): void {
    const { ready, regions } = this, lane = site.own as LooseLane, until = at + site.reads + site.writes + site.adds,
      interval = site.intervals[0]!, latency = this.latency[lane.number]!;
    regions.look(ready, site.number, lane.number, at, until, site.reads, site.adds, latency + this.semaphore);
    if (site.table !== null) {
      if (site.table !== this.table) this.loadTable(site);
      if (this.tableThere > ready.time) { ready.time = this.tableThere; ready.bar = this.tableBar; ready.why = LANE; }
    }
    const [alone, start] = lane.room(ready.time, interval, site.gaps);
    let [behind, by] = [ready.bar, ready.why];
    if (alone !== ready.time) { behind = lane.before(alone); by = LANE; }
    if (start > alone) by = RESOURCE;
    for (const port of site.gaps) port.reserve(start, interval);
    const free = start + interval, end = free + latency, reason = this.reason(behind, by);
    const bar = this.add(site.number, lane.number, PASS, start, free, end, behind, by);
    lane.occupy(start, interval, bar, reason);
    lane.last = bar; lane.end = Math.max(lane.end, end); lane.busy += interval;
    regions.done(lane.number, at, until, site.reads, end + this.semaphore, bar);
  }
  private looseMatmul(site: Site, at: number): void {
    const { ready, regions } = this, lane = site.own as LooseLane, until = at + site.reads + site.writes + site.adds,
      latency = this.latency[lane.number]!;
    regions.look(ready, site.number, lane.number, at, until, site.reads, site.adds, latency + this.semaphore);
    let [from, behind, by, end] = [ready.time, ready.bar, ready.why, 0];
    for (let n = 0; n < site.intervals.length; n += 2) {
      const interval = this.warm(Math.max(from, lane.free), Math.max(site.intervals[n]!, site.intervals[n + 1]!));
      const [start] = lane.room(from, interval, []);
      if (start !== from) { behind = lane.before(start); by = LANE; }
      const free = start + interval, reason = this.reason(behind, by);
      end = free + latency;
      const bar = this.add(site.number, lane.number, MULTIPLY, start, free, end, behind, by);
      lane.occupy(start, interval, bar, reason);
      from = free; behind = bar; by = LANE;
      lane.busy += interval;
    }
    lane.last = behind; lane.end = Math.max(lane.end, end);
    regions.done(lane.number, at, until, site.reads, end + this.semaphore, behind);
  }

  private result(): Played {
    type Nine = [Column, Column, Column, Column, Column, Column, Column, Column, Column];
    const [site, lane, kind, start, busy, end, cause, why, instance] =
      this.bars.map((c) => Float64Array.from(c)) as Column[] as Nine;
    const bars = { site, lane, kind, start, busy, end, cause, why, instance,
      call: site.map((n) => this.replay.calls[n]!), bytes: site.map((n) => this.replay.bytes[n]!) };
    return { perNs: this.perNs, end: Math.max(...this.lanes.map((l) => l.end)), candidate: this.candidate, bars,
      lanes: this.uses(), path: criticalPath(bars) };
  }
  private uses(): Record<string, LaneUse> {
    const { model, perNs, firstQueue } = this, found: Record<string, LaneUse> = {}, all = new Map<number, number>();
    const named = (stalls: Map<number, number>) =>
      Object.fromEntries([...stalls].filter(([, t]) => t).sort((a, b) => b[1] - a[1]).map(([key, t]) => {
      const why = model.causes[key >> 4]!, who = (key & 15) - 1;
      return [who < 0 ? why : `${why} ${model.links[why]} ${model.lanes[who] ?? model.dma}`, t / perNs];
    }));
    model.lanes.forEach((name, n) =>
      { found[name] = { busy: this.lanes[n]!.busy / perNs, stalls: named(this.lanes[n]!.stalls) }; });
    for (const queue of this.lanes.slice(firstQueue)) queue.stalls.forEach((t, key) =>
      all.set(key, (all.get(key) ?? 0) + t));
    found[model.dma] = { busy: Math.max(this.bandwidth.busy,
      ...Object.values(this.generators).map((g) => g.busy)) / perNs, stalls: named(all) };
    return found;
  }
}

/** Back from the bar that ends last, each time to the bar that was waited for. */
function criticalPath(bars: Pick<Played["bars"], "start" | "end" | "cause">): Played["path"] {
  const path: [number, number][] = [];
  let bar = 0;
  for (let n = 1; n < bars.end.length; n++) if (bars.end[n]! > bars.end[bar]!) bar = n;
  let until = bars.end[bar] ?? 0;
  if (!bars.end.length) bar = -1;
  for (; bar >= 0; bar = bars.cause[bar]!) {
    path.push([bar, Math.max(0, until - bars.start[bar]!)]);
    until = bars.start[bar]!;
  }
  if (path.length) path.at(-1)![1] += Math.max(0, until);
  path.reverse();
  return { bar: Int32Array.from(path, ([n]) => n), ticks: Float64Array.from(path, ([, ticks]) => ticks) };
}

/** Buffer → its copies with so many DMA queues, as the toolchain has them and as `change` says. */
export const copiesOf = (candidate: Candidate, queues: number, change: Pick<Change, "copies">): Record<string,
  number> => ({ ...candidate.copies[32 - Math.clz32(queues)], ...change.copies });

/** The timeline of the changed kernel, of its fastest candidate. Throws where it does not run on the target. */
export function play(replay: Replay, model: Model, change: Change): Played {
  const candidates = replay.candidates[change.target];
  if (!candidates || "reason" in candidates) throw new Error(candidates ? candidates.reason
    : `no table for ${change.target}`);
  return candidates.map((each) => new Player(replay, each, model, change).play())
    .reduce((best, other) => other.end < best.end ? other : best);
}
