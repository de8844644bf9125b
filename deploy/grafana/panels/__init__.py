"""What Aerie's dashboards show: one file a dashboard, and the words they are written in."""

from panels import overview, requests, wiring

DASHBOARDS = (overview.DASHBOARD, requests.DASHBOARD, wiring.DASHBOARD)
