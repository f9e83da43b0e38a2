// Plays a program again, in program order, as neuroncore.timeline does: to the tick.
// Names, numbers and constants come from `Model`, the table that Python wrote into the page.
import type { Model, Replay, Work } from "./data.ts";
import { Gaps, commonRoom } from "./gaps.ts";
import { type Ready, Regions } from "./regions.ts";

/** What is other than in the kernel as it was written. */
export interface Change {
  target: string;
  /** Constants that are not those of the target. */
  values: Record<string, number>;
  queues: number | null;
  /** Buffer → how many copies of it are used in turn. */
  copies: Record<string, number>;
  /** Pairs of sites: the first does not wait for the second. */
  cuts: [number, number][];
  /** Site → its DMA queue. */
  queueOf: Record<number, number>;
}
export interface LaneUse { busy: number; stalls: Record<string, number> }
export interface Played {
  perNs: number; end: number;
  bars: Record<"site" | "lane" | "kind" | "start" | "busy" | "end" | "cause" | "why", Int32Array>;
  lanes: Record<string, LaneUse>;
  path: { bar: Int32Array; ticks: Int32Array };
}

const [LANE, RESOURCE] = [2, 3], [WEIGHTS, MULTIPLY, PASS, TABLE, TRANSFER] = [0, 1, 2, 3, 4];

/** To the nearest whole number, halves to the even one, as Python rounds. */
const round = (x: number): number => { const up = Math.round(x); return x % 1 === 0.5 && up % 2 ? up - 1 : up; };

interface Lane { number: number; free: number; last: number; busy: number; end: number; stalls: Map<number, number> }
type Site = Work & { number: number; own: Lane; step: (site: Site, at: number) => void; intervals: number[]; gaps: Gaps[]; unit: Gaps | null; length: number; share: number; gap: number; tail: number; begin: number };

class Player {
  private readonly bars: number[][] = [[], [], [], [], [], [], [], []];
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
  private since: number; private warmBusy = 0; private cold = false;
  private readonly window: number;

  constructor(private readonly replay: Replay, private readonly model: Model, private readonly change: Change) {
    const target = model.targets[change.target]!, ghz = target.machine.clock_ghz;
    this.values = { ...target.values, ...change.values };
    this.machine = target.machine;
    this.perNs = 2 * ghz.tensor!;
    this.perCycle = model.lanes.map((lane) => round(this.perNs / ghz[lane]!));
    this.firstQueue = model.lanes.length;
    this.latency = model.latency.map((name, lane) => name ? this.cycles(lane, this.values[name]!) : 0);
    this.semaphore = this.ticks("SEMAPHORE");
    this.window = this.ticks("WARM_UP");
    this.since = -this.window;
    const queues = change.queues ?? target.machine.dma_queues;
    this.lanes = Array.from({ length: this.firstQueue + queues }, (_, number) => ({ number, free: 0, last: -1, busy: 0, end: 0, stalls: new Map() }));
    const copies = new Map(Object.entries(change.copies).map(([name, n]) => [replay.tracks.indexOf(name), n]));
    const width = replay.calls.length, cuts = new Set(change.cuts.map(([site, other]) => site * width + other)), sites = this.bars[0]!;
    this.regions = new Regions(replay, copies, cuts.size ? (site, bar) => bar >= 0 && cuts.has(site * width + sites[bar]!) : null);
  }

  private ns(time: number): number { return round(time * this.perNs); }
  private ticks(name: string): number { return this.ns(this.values[name]!); }
  private cycles(lane: number, count: number): number { return round(count * this.perCycle[lane]!); }

  /** The sites, ready to be played. */
  private sites(): Site[] {
    const works = this.replay.works[this.change.target];
    if (!works || "reason" in works) throw new Error(works ? works.reason : `no table for ${this.change.target}`);
    let transfers = 0;
    return Array.from(works.of, (of, number) => {
      const work = works.each[of]!, site = { ...work, number, gaps: [], intervals: [], unit: null, length: 0, share: 0, gap: 0, tail: 0, begin: 0 } as unknown as Site;
      if (work.kind === TRANSFER) return this.transfer(site, transfers++);
      site.own = this.lanes[work.lane]!;
      site.step = work.kind === PASS ? this.pass : this.matmul;
      if (work.kind === PASS) site.intervals = [this.cycles(work.lane, work.interval!)];
      else site.intervals = work.passes!.flat().map((cycles) => this.cycles(work.lane, cycles));
      site.gaps = (work.ports ?? []).map((name) => this.ports.get(name) ?? this.ports.set(name, new Gaps()).get(name)!);
      return site;
    });
  }
  private transfer(site: Site, number: number): Site {
    const { values, machine } = this, queues = this.lanes.length - this.firstQueue;
    const queue = (this.change.queueOf[site.number] ?? number) % queues, unit = site.generators![queue % 2];
    site.own = this.lanes[this.firstQueue + queue]!;
    site.unit = unit ? this.generators[unit]! : null;
    const engines = Math.min(machine.dma_engines, Math.ceil(site.partitions! / this.model.partitionsPerDmaEngine), site.descriptors!) || 1;
    const each = Math.max(site.run! / values.DMA_BANDWIDTH! + values.DMA_DESCRIPTOR!, values.DMA_DESCRIPTOR_MIN!);
    site.length = Math.max(1, this.ns(site.descriptors! / engines * each));
    const idle = this.ticks("DMA_GAP") * engines / machine.dma_engines;
    site.share = Math.max(1, round(site.length * engines / machine.dma_engines + idle));
    site.gap = round(idle);
    site.tail = this.ns(values.DMA_STAGGER! * (engines - 1));
    site.begin = this.ticks(site.begins!);
    site.step = this.dma;
    return site;
  }

  play(): Played {
    const { executed, made } = this.replay, sites = this.sites();
    for (let at = 0, count = 0, m = 0; at < executed.length; count++) {
      for (; m < made.before.length && made.before[m]! <= count; m++) this.regions.made(made.track[m]!);
      const site = sites[executed[at]!]!;
      site.step.call(this, site, at + 1);
      at += 1 + site.reads + site.writes + site.adds;
    }
    return this.result();
  }

  private add(site: number, lane: number, kind: number, start: number, free: number, end: number, cause: number, why: number): number {
    const [sites, lanes, kinds, starts, busy, ends, causes, whys] = this.bars as [number[], number[], number[], number[], number[], number[], number[], number[]];
    sites.push(site); lanes.push(lane); kinds.push(kind); starts.push(start); busy.push(free - start); ends.push(end); causes.push(cause); whys.push(why);
    return sites.length - 1;
  }
  private stall(lane: Lane, start: number, cause: number, why: number): void {
    if (lane.last < 0 || start <= lane.free) return;
    const who = why === RESOURCE || cause < 0 ? -1 : Math.min(this.bars[1]![cause]!, this.firstQueue), key = 16 * why + who + 1;
    lane.stalls.set(key, (lane.stalls.get(key) ?? 0) + start - lane.free);
  }

  private pass(site: Site, at: number): void {
    const { ready, regions } = this, lane = site.own, until = at + site.reads + site.writes + site.adds, interval = site.intervals[0]!;
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
    const [cause, why] = waits ? [ready.bar, ready.why] : [lane.last, LANE];
    this.stall(lane, start, cause, why);
    lane.last = this.add(site.number, lane.number, TABLE, start, start + loading, start + loading, cause, why);
    lane.free = start + loading; lane.busy += loading;
    this.table = site.table!;
  }

  /** How long a multiply that begins at `start` occupies the engine: twice as long where it is cold. */
  private warm(start: number, interval: number): number {
    if (!this.window) return interval;
    const elapsed = start - this.since;
    if (elapsed >= this.window) { this.cold = 2 * this.warmBusy < elapsed || !this.warmBusy; this.since = start; this.warmBusy = 0; }
    if (this.cold) interval *= 2;
    this.warmBusy += interval;
    return interval;
  }
  private matmul(site: Site, at: number): void {
    const { weights, ready, regions } = this, lane = site.own, split = at + Math.min(1, site.reads), until = at + site.reads + site.writes + site.adds;
    const reads = site.reads - (split - at), latency = this.latency[lane.number]!, loadLatency = this.cycles(lane.number, this.values.LOAD_LATENCY!);
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
    const { ready, regions } = this, lane = site.own, until = at + site.reads + site.writes + site.adds;
    regions.look(ready, site.number, lane.number, at, until, site.reads, site.adds);
    let [trigger, cause, why] = [lane.free, lane.last, LANE];
    if (ready.time > trigger) { trigger = ready.time; cause = ready.bar; why = ready.why; }
    if (site.unit) {
      const slot = site.unit.reserve(trigger, this.ticks("DMA_ISSUE"));
      if (slot > trigger) { trigger = slot; why = RESOURCE; }
    }
    const begin = trigger + site.begin, end = Math.max(this.bandwidth.fill(begin, site.share) - site.gap, begin + site.length);
    const complete = end + site.tail + this.ticks("DMA_COMPLETION");
    this.stall(lane, trigger, cause, why);
    const bar = this.add(site.number, lane.number, TRANSFER, trigger, end, complete, cause, why);
    lane.free = trigger + this.ticks("DMA_QUEUE_FLOOR"); lane.last = bar; lane.busy += site.length;
    lane.end = Math.max(lane.end, complete);
    regions.done(lane.number, at, until, site.reads, complete + this.ticks("DMA_TO_CONSUMER"), bar);
  }

  private result(): Played {
    const [site, lane, kind, start, busy, end, cause, why] = this.bars.map((column) => Int32Array.from(column)) as [Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array, Int32Array];
    const bars = { site, lane, kind, start, busy, end, cause, why };
    return { perNs: this.perNs, end: Math.max(...this.lanes.map((l) => l.end)), bars, lanes: this.uses(), path: criticalPath(bars) };
  }
  private uses(): Record<string, LaneUse> {
    const { model, perNs, firstQueue } = this, found: Record<string, LaneUse> = {}, all = new Map<number, number>();
    const named = (stalls: Map<number, number>) => Object.fromEntries([...stalls].filter(([, t]) => t).sort((a, b) => b[1] - a[1]).map(([key, t]) => {
      const why = model.causes[key >> 4]!, who = (key & 15) - 1;
      return [who < 0 ? why : `${why} ${model.links[why]} ${model.lanes[who] ?? model.dma}`, t / perNs];
    }));
    model.lanes.forEach((name, n) => { found[name] = { busy: this.lanes[n]!.busy / perNs, stalls: named(this.lanes[n]!.stalls) }; });
    for (const queue of this.lanes.slice(firstQueue)) queue.stalls.forEach((t, key) => all.set(key, (all.get(key) ?? 0) + t));
    found[model.dma] = { busy: Math.max(this.bandwidth.busy, ...Object.values(this.generators).map((g) => g.busy)) / perNs, stalls: named(all) };
    return found;
  }
}

/** Back from the bar that ends last, each time to the bar that was waited for. */
function criticalPath(bars: Played["bars"]): Played["path"] {
  const path: [number, number][] = [];
  let bar = bars.end.reduce((best, end, n) => end > bars.end[best]! ? n : best, 0), until = bars.end[bar] ?? 0;
  if (!bars.end.length) bar = -1;
  for (; bar >= 0; bar = bars.cause[bar]!) {
    path.push([bar, Math.max(0, until - bars.start[bar]!)]);
    until = bars.start[bar]!;
  }
  if (path.length) path.at(-1)![1] += Math.max(0, until);
  path.reverse();
  return { bar: Int32Array.from(path, ([n]) => n), ticks: Int32Array.from(path, ([, ticks]) => ticks) };
}

/** The timeline of the changed kernel. Throws where it does not run on the target. */
export const play = (replay: Replay, model: Model, change: Change): Played => new Player(replay, model, change).play();
