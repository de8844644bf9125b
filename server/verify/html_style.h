// The style sheet of the HTML report: light and dark, screen and paper, nothing loaded.
//
// Colours carry no meaning alone: each stands beside a word.
#pragma once

namespace aerie {

inline constexpr char kHtmlStyle[] = R"(
:root { color-scheme: light dark; --page: #fff; --ink: #1b1f24; --quiet: #5b6570; --rule: #d5dae0;
  --soft: #f3f5f7; --good: #1a7f4b; --bad: #b3261e; --open: #9a6700; --same: #2f6fb2;
  --far: #a7b0ba; }
@media (prefers-color-scheme: dark) { :root { --page: #14181d; --ink: #e6e9ed; --quiet: #9aa5b1;
  --rule: #333b44; --soft: #1d232a; --good: #4cc38a; --bad: #ff8a80; --open: #e3b341;
  --same: #79b8ff; --far: #59636e; } }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.05rem; font-weight: 600; margin: 0 0 .75rem; color: var(--quiet); }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .5rem; }
p { margin: .4rem 0; } .quiet { color: var(--quiet); }
.verdict { border-left: 6px solid var(--tone); background: var(--soft); padding: .9rem 1.1rem;
  border-radius: 4px; }
.verdict strong { font-size: 1.5rem; color: var(--tone); display: block; }
.verified { --tone: var(--good); } .contradicted { --tone: var(--bad); }
.undecided { --tone: var(--open); } .equivalent { --tone: var(--same); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 1rem 0 0; }
dt { color: var(--quiet); } dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--rule);
  vertical-align: top; } th { color: var(--quiet); font-weight: 600; }
td.number, th.number { text-align: right; white-space: nowrap; }
.tag { font-weight: 600; white-space: nowrap; } .t-good { color: var(--good); }
.t-bad { color: var(--bad); } .t-open { color: var(--open); } .t-same { color: var(--same); }
.t-far { color: var(--quiet); }
svg { display: block; width: 100%; min-width: 44rem; height: auto; font: 13px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .name, svg .end { text-anchor: end; }
svg .middle { text-anchor: middle; } svg .declared { font-weight: 700; }
svg .note, svg .tick, svg .head { fill: var(--quiet); font-size: 12px; }
svg .axis { stroke: var(--quiet); } svg .grid { stroke: var(--rule); }
svg .range { stroke: var(--far); } svg .whisker { stroke-width: 2.5; fill: none; }
svg .median { stroke: var(--ink); stroke-width: 2.5; }
svg .s-reference { fill: var(--same); stroke: var(--same); }
svg .s-better { fill: var(--good); stroke: var(--good); }
svg .s-equivalent { fill: var(--same); stroke: var(--same); }
svg .s-open { fill: var(--open); stroke: var(--open); }
svg .s-excluded { fill: var(--far); stroke: var(--far); } svg rect { stroke: none !important; }
svg .curve { fill: none; stroke-width: 2.5; } svg .dashed.curve { stroke-dasharray: 6 5; }
svg .c-reference { stroke: var(--same); } svg .c-best { stroke: var(--good); }
svg .dot.c-reference { fill: var(--same); } svg .dot.c-best { fill: var(--good); }
@media print { main { max-width: none; } h2 { break-after: avoid; } svg { break-inside: avoid; } }
)";

}  // namespace aerie
