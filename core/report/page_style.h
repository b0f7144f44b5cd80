// Styles of the HTML page for light and dark mode, phones and print. Part of html.cpp.
#pragma once

namespace shw {

inline constexpr const char* kPageStyle = R"css(
:root{--page:#fbfbfa;--text:#1d2127;--quiet:#5c6370;--line:#e3e5e8;--bad:#c2382b;--gold:#8a5f05;
--good:#22804f;--warn:#8a5f05;--head-bad:#fbe9e7;--head-good:#e6f4ec;--head-warn:#fdf3dc;--seam:#e0a526;--code:#f0f1f2}
@media (prefers-color-scheme:dark){:root{--page:#15181d;--text:#e8eaed;--quiet:#9aa2ad;--line:#2a2f36;
--bad:#ff6b5e;--gold:#f0b429;--good:#4fbf87;--warn:#f0b429;--head-bad:#3b1f1e;--head-good:#173226;
--head-warn:#372b12;--seam:#f0b429;--code:#20242a}}
*{box-sizing:border-box}
body{margin:0;overflow-wrap:anywhere;background:var(--page);color:var(--text);font:15px/1.55 Inter,"Noto Sans","Segoe UI",system-ui,sans-serif}
code,pre,td.n,.end,.on{font-family:"JetBrains Mono",ui-monospace,"DejaVu Sans Mono",monospace;font-size:.92em}
header{padding:22px max(24px,calc(50vw - 480px));border-bottom:1px solid var(--line)}
header.error{background:var(--head-bad)}header.clean{background:var(--head-good)}header.warning{background:var(--head-warn)}
header h1{margin:0;font-size:22px;font-weight:650}header p{margin:4px 0 0;color:var(--quiet)}
.sign{display:inline-block;width:28px;height:28px;margin-right:10px;border-radius:50%;color:#fff;text-align:center;line-height:28px;font-weight:700}
.error .sign{background:#d9483b}.clean .sign{background:#2c9a61}.warning .sign{background:#ab760b}
main{max-width:1008px;margin:0 auto;padding:8px 24px 60px}
h2{margin:40px 0 10px;font-size:12px;font-weight:600;letter-spacing:.09em;text-transform:uppercase;color:var(--quiet)}
h2 code{text-transform:none;letter-spacing:0}td.o{white-space:nowrap}
section.finding{margin:22px 0 34px}
h3{margin:0 0 6px;font-size:17px;font-weight:600;overflow-wrap:anywhere}
h3 .rule{font:500 14px "JetBrains Mono",ui-monospace,monospace;margin-right:10px}
.error .rule,.bad{color:var(--bad)}.warning .rule{color:var(--warn)}.note .rule{color:var(--quiet)}
.gold{color:var(--gold)}.good{color:var(--good)}.quiet{color:var(--quiet)}
.cause{max-width:70ch;margin:6px 0 14px}
ul.subjects{margin:0;padding:0;list-style:none;columns:2 360px}ul.subjects li{overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}th{font-weight:500;color:var(--quiet);text-align:left;white-space:nowrap}
th,td{padding:5px 14px 5px 0;border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:anywhere}
th.n,td.n{text-align:right;white-space:nowrap}.wide{overflow-x:auto}td.k{color:var(--quiet);width:180px;white-space:nowrap}td:first-child{min-width:15ch}td:first-child.o,td:first-child.k{min-width:0}
.maps{display:flex;flex-wrap:wrap;gap:8px 44px;align-items:flex-start}
figure{margin:8px 0}figure figcaption{font-size:13px}figure.saved code,figure.after code{font-size:12px}
figure.after figcaption b{color:var(--gold)}
svg{display:block;max-width:100%;height:auto}svg text{font-size:12px;fill:var(--text)}
svg .on{fill:#fff;font-size:11px}svg .dark{fill:#000}svg text.quiet{fill:var(--quiet)}svg .end{fill:var(--quiet);font-size:11px}
svg .end.bad{fill:var(--bad)}svg .end.gold{fill:var(--gold)}
.tile{stroke:var(--page);stroke-width:1}.bare,.outline{fill:none;stroke:var(--quiet);stroke-dasharray:4 3}
.seam{stroke:var(--seam);stroke-width:2.5}.lost{fill:var(--bad);fill-opacity:.55;stroke:var(--bad)}
.bars{display:inline-block;vertical-align:middle}.bars path{fill:none;stroke:var(--quiet)}
.badge{display:inline-block;border:1px solid currentColor;border-radius:5px;padding:0 7px;font-size:13px;margin-right:6px}
pre{background:var(--code);padding:12px 14px;border-radius:6px;overflow-x:auto;white-space:pre-wrap;overflow-wrap:anywhere}
@media (max-width:640px){header{padding:16px 14px}main{padding:4px 14px 40px}th,td{padding-right:10px}td.k{width:auto;white-space:normal;overflow-wrap:normal}}
@media print{header{border:0}section.finding,tr{break-inside:avoid}.wide{overflow:visible}}
)css";

}  // namespace shw
