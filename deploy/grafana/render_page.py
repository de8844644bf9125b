"""One dashboard as a folder: a PNG for each panel, and index.html, which lays them out on the dashboard's grid."""

import datetime
import html
import json

from render_panels import draw

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 14px system-ui, sans-serif; margin: 1.5em auto; max-width: 1420px; color: #222; background: #f6f6f6; }}
.row {{ display: grid; grid-template-columns: repeat(24, 1fr); gap: 8px; }}
figure {{ margin: 0; padding: 6px; background: white; border: 1px solid #ddd; border-radius: 3px; }}
figcaption {{ font-weight: 600; cursor: help; }}
img {{ width: 100%; display: block; }}
details {{ color: #555; font-size: 12px; }}
code {{ word-break: break-all; }}
</style></head><body>
<h1>{title}</h1>
<p>{description}</p>
<p>{range}; {filters}.</p>
{rows}
</body></html>
"""
FIGURE = """<figure style="grid-column: span {width}">
<figcaption title="{description}">{title}</figcaption>
<img src="{picture}" alt="{alt}">
<details><summary>what it shows</summary><p>{description}</p>{expressions}</details>
</figure>"""


def render(dashboard_path, prometheus, folder):
    """Writes the folder and returns the path of its index.html. PrometheusError when a query fails."""
    dashboard = json.loads(dashboard_path.read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    rows, figures = [], []
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            figures = []
            rows.append((panel["title"], figures))
            continue
        picture = f"panel-{panel['id']:02d}.png"
        drawn = draw(panel, prometheus, folder / picture)
        figures.append(FIGURE.format(
            width=panel["gridPos"]["w"], title=html.escape(panel["title"]), picture=picture,
            description=html.escape(panel["description"]),
            alt=html.escape(panel["title"] if drawn else f"{panel['title']}: no traffic"),
            expressions="".join(f"<p><code>{html.escape(prometheus.filled(target['expr']))}</code></p>"
                                for target in panel["targets"])))
    body = "".join(f"<h2>{html.escape(title)}</h2>\n<div class=row>\n" + "\n".join(figures) + "\n</div>\n"
                   for title, figures in rows)
    moments = [datetime.datetime.fromtimestamp(moment).isoformat(" ", "seconds")
               for moment in (prometheus.start, prometheus.end)]
    filters = ", ".join(f"{name} {value if value != '.*' else 'all'}" for name, value in prometheus.variables.items())
    index = folder / "index.html"
    index.write_text(PAGE.format(title=html.escape(dashboard["title"]), rows=body,
                                 description=html.escape(dashboard["description"]),
                                 range=" to ".join(moments), filters=html.escape(filters)), encoding="utf-8")
    return index
