"""A Dashboard of panels.model as Grafana's JSON (the classic model, schema version 41: Grafana 11.6 and later read it).

What one would get wrong: no data source is named anywhere. Every query asks the one that the variable `datasource`
holds, so the files work in any Grafana, whatever its Prometheus is called there.
"""

import json

from panels.model import SELECT_PROCESS, UNITS

SCHEMA_VERSION = 41
COLUMNS = 24
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
NO_TRAFFIC = "no traffic"

# Each narrows the ones behind it: jobs of Aerie, their drafters, what these draft for, and the instances that do.
VARIABLES = (
    ("job", "Job", "label_values(aerie_drafter_info, job)"),
    ("drafter", "Drafter", 'label_values(aerie_drafter_info{job=~"$job"}, drafter)'),
    ("target", "Target", 'label_values(aerie_drafter_info{job=~"$job",drafter=~"$drafter"}, target)'),
    ("instance", "Instance",
     'label_values(aerie_drafter_info{job=~"$job",drafter=~"$drafter",target=~"$target"}, instance)'),
)
# Marks on every time line.
ANNOTATIONS = (
    ("Alerts", "red", 'ALERTS{alertname=~"Aerie.*",alertstate="firing"}'),
    ("Starts", "blue", f"changes(process_start_time_seconds{{{SELECT_PROCESS}}}[$__rate_interval]) > 0"),
)
COLOURS_OF_STATES = {"ok": "green", "unknown": "blue", "suspect": "orange", "wrong": "red"}

PLUGINS = {"stat": "stat", "states": "stat", "timeseries": "timeseries", "stacked": "timeseries", "bars": "bargauge",
           "heatmap": "heatmap", "table": "table"}


def _variables():
    # No `current`: Grafana takes its default Prometheus, or the first.
    datasource = {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus",
                  "refresh": 1, "hide": 0, "includeAll": False, "multi": False, "regex": "", "options": []}
    queries = [{"type": "query", "name": name, "label": label, "datasource": DATASOURCE,
                "query": {"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
                # On every change of the time range: instances come and go.
                "refresh": 2, "hide": 0, "includeAll": True, "multi": True, "allValue": ".*", "regex": "", "sort": 1,
                "options": [], "current": {"selected": True, "text": ["All"], "value": ["$__all"]}}
               for name, label, query in VARIABLES]
    return [datasource, *queries]


def _annotations():
    return [{"name": name, "enable": True, "hide": False, "iconColor": colour, "datasource": DATASOURCE, "expr": expr}
            for name, colour, expr in ANNOTATIONS]


def _mappings(kind):
    """How values are spelt. NaN and nothing are "no traffic", which is neither good nor bad."""
    nothing = {"type": "special", "options": {"match": "null+nan",
                                              "result": {"text": NO_TRAFFIC, "color": "text", "index": 0}}}
    return [] if kind in ("heatmap", "table") else [nothing]


def _defaults(panel):
    defaults = {"unit": panel.unit, "noValue": NO_TRAFFIC, "mappings": _mappings(panel.kind)}
    if panel.kind in ("timeseries", "stacked", "bars", "stat"):
        bounds = (("min", panel.minimum), ("max", panel.maximum))
        defaults |= {name: value for name, value in bounds if value is not None}
    if panel.thresholds:
        steps = [{"value": value, "color": colour} for value, colour in panel.thresholds]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
        defaults["color"] = {"mode": "thresholds"}
    elif panel.kind == "bars":
        defaults["color"] = {"mode": "continuous-BlPu"}
    elif panel.kind != "heatmap":
        defaults["color"] = {"mode": "palette-classic"}
    if panel.kind in ("timeseries", "stacked"):
        stacked = panel.kind == "stacked"
        defaults["custom"] = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 40 if stacked else 5,
                              # A gap is no traffic: a line over it would claim values.
                              "spanNulls": False, "showPoints": "auto",
                              "stacking": {"mode": "normal" if stacked else "none", "group": "A"}}
    return defaults


def _overrides(panel):
    """States have colours of their own; columns that say nothing are hidden."""
    if any(query.legend.endswith("{{state}}") and "aerie_wiring" in query.expr for query in panel.queries):
        return [{"matcher": {"id": "byRegexp", "options": f"/(^|: ){state}$/"},
                 "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}]}
                for state, colour in COLOURS_OF_STATES.items()]
    if panel.kind == "table":
        return [{"matcher": {"id": "byRegexp", "options": "/^(Time|Value)$/"},
                 "properties": [{"id": "custom.hidden", "value": True}]}]
    return []


def _options(panel):
    legend = {"displayMode": "table", "placement": "bottom", "showLegend": True, "calcs": ["mean", "lastNotNull"]}
    reduce = {"values": False, "calcs": ["lastNotNull"], "fields": ""}
    return {
        "stat": {"reduceOptions": reduce, "graphMode": "none", "colorMode": "value", "justifyMode": "auto",
                 "textMode": "value", "orientation": "auto"},
        # The name of the series is the state; its value is always 1.
        "states": {"reduceOptions": reduce, "graphMode": "none", "colorMode": "background", "justifyMode": "auto",
                   "textMode": "name", "orientation": "auto"},
        "timeseries": {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}},
        "stacked": {"legend": legend, "tooltip": {"mode": "multi", "sort": "none"}},
        "bars": {"reduceOptions": reduce, "displayMode": "basic", "orientation": "horizontal", "showUnfilled": True,
                 "valueMode": "color"},
        "heatmap": {"calculate": False, "yAxis": {"unit": panel.unit, "axisPlacement": "left"},
                    "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5, "reverse": False},
                    "cellGap": 1, "cellValues": {"unit": "reqps"}, "filterValues": {"le": 1e-9},
                    "rowsFrame": {"layout": "auto"}, "showValue": "never", "legend": {"show": True},
                    "tooltip": {"mode": "single", "yHistogram": False}, "exemplars": {"color": "rgba(255,0,255,0.7)"}},
        "table": {"showHeader": True, "cellHeight": "sm"},
    }[panel.kind]


def _targets(panel):
    # What shows one value asks for this moment. Over a range Grafana would show the last value that there was, and a
    # drafter without traffic would look as it did an hour ago.
    instant = panel.kind in ("table", "stat", "states", "bars")
    form = {"heatmap": "heatmap", "table": "table"}.get(panel.kind, "time_series")
    return [{"refId": chr(ord("A") + number), "datasource": DATASOURCE, "expr": query.expr,
             "legendFormat": query.legend, "editorMode": "code", "format": form, "instant": instant,
             "range": not instant}
            for number, query in enumerate(panel.queries)]


def _panel(panel, number, x, y):
    assert panel.unit in UNITS, f"{panel.title}: unit {panel.unit!r} is not in panels.model.UNITS; add it there"
    return {"id": number, "type": PLUGINS[panel.kind], "title": panel.title, "description": panel.description,
            "datasource": DATASOURCE, "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
            "targets": _targets(panel), "options": _options(panel),
            "fieldConfig": {"defaults": _defaults(panel), "overrides": _overrides(panel)}}


def dashboard_json(dashboard, dashboards):
    """As a dict. `dashboards` are all there are: each links to the others."""
    panels, number, y = [], 0, 0
    for row in dashboard.rows:
        number += 1
        panels.append({"id": number, "type": "row", "title": row.title, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1}})
        y += 1
        x = tallest = 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, tallest = 0, y + tallest, 0
            number += 1
            panels.append(_panel(panel, number, x, y))
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
    links = [{"type": "link", "title": other.title, "url": f"/d/{other.uid}", "icon": "dashboard", "tooltip": "",
              "tags": [], "asDropdown": False, "targetBlank": False, "includeVars": True, "keepTime": True}
             for other in dashboards if other.uid != dashboard.uid]
    return {"uid": dashboard.uid, "title": dashboard.title, "description": dashboard.description, "tags": ["aerie"],
            "schemaVersion": SCHEMA_VERSION, "version": 1, "editable": True, "graphTooltip": 1, "timezone": "browser",
            "refresh": "30s", "time": {"from": "now-1h", "to": "now"}, "links": links,
            "annotations": {"list": _annotations()}, "templating": {"list": _variables()}, "panels": panels}


def dashboard_text(dashboard, dashboards):
    """As the file's text."""
    return json.dumps(dashboard_json(dashboard, dashboards), indent=2, ensure_ascii=False) + "\n"
