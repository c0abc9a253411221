package boards

import (
	"bytes"
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/earshot-dev/earshot/dashboards/internal/grafana"
)

// SourceUID is the data source that alert rules ask. They know no variables, so
// the provisioned one has a fixed uid.
const SourceUID = "earshot-clickhouse"

const runbook = "https://github.com/earshot-dev/earshot/blob/main/docs/runbook.md"

// rule is an alert: a query with one number per row, and texts that name it.
type rule struct {
	uid, title, severity string
	summary              string  // the agent or source, its number and the limit; without $, which provisioning takes for the environment's
	means                string  // the meaning for the work, and the contents of the dashboard
	board, panel, pick   string  // where: the dashboard, its panel, and the variables that the address sets
	window               int     // seconds that the query looks back
	above                float64 // the number at which it begins
	lasting              string  // how long it has to stay there
	anchor               string  // in the runbook
	sql                  string
	silence              bool // no rows are an alarm too
}

// failed is the condition for failed calls. A call that a person denied is no failure
// of the tool.
const failed = "status = 'error' AND error_type != 'denied'"

func rules() []rule {
	return []rule{
		{
			uid: "earshot-delegation-p95", title: "Delegations are slow", severity: "warning", window: 1800, above: 120, lasting: "5m", anchor: "delegations-are-slow",
			summary: "Delegations of {{ .Labels.agent }} to {{ .Labels.delegate }} take {{ humanizeDuration .Values.A.Value }} (p95 of the last 30 minutes); the limit is 2m 0s.",
			means:   "Callers wait for these delegations. The dashboard has the slowest of them, and what took their time: a model, a tool or a further agent.",
			board:   "delegations", panel: "By pair", pick: "&var-agent={{ urlquery .Labels.agent }}",
			sql: `
SELECT ` + agent + ` AS agent, ` + delegate + ` AS delegate, quantileExact(0.95)(duration_ms) / 1000 AS p95_seconds
FROM v_delegations
WHERE $__timeFilter_ms(ts) AND status != 'running' AND NOT async
GROUP BY agent, delegate
HAVING count() >= 5`,
		}, {
			uid: "earshot-delegation-errors", title: "Delegations fail", severity: "critical", window: 1800, above: 0.2, lasting: "5m", anchor: "delegations-fail",
			summary: "{{ humanizePercentage .Values.A.Value }} of the delegations to {{ .Labels.delegate }} failed in the last 30 minutes; the limit is 20%.",
			means:   "Whoever hands work to this agent gets an error. The dashboard has the failures with their reasons; those that a person denied are not counted.",
			board:   "delegations", panel: "Slowest",
			sql: `
SELECT ` + delegate + ` AS delegate, countIf(` + failed + `) / count() AS failed
FROM v_delegations
WHERE $__timeFilter_ms(ts) AND status != 'running'
GROUP BY delegate
HAVING count() >= 5`,
		}, {
			uid: "earshot-tool-errors", title: "A tool fails", severity: "warning", window: 1800, above: 0.3, lasting: "10m", anchor: "a-tool-fails",
			summary: "{{ humanizePercentage .Values.A.Value }} of the calls of the tool {{ .Labels.tool }} failed in the last 30 minutes; the limit is 30%.",
			means:   "Agents go on without its results, or try again. The dashboard has its errors and who calls it; calls that a person denied are not counted.",
			board:   "tools", panel: "By tool", pick: "&var-tool={{ urlquery .Labels.tool }}",
			sql: `
SELECT tool_name AS tool, countIf(` + failed + `) / count() AS failed
FROM v_tool_calls
WHERE $__timeFilter_ms(ts) AND status != 'running' AND NOT is_delegation AND NOT internal
GROUP BY tool
HAVING count() >= 10`,
		}, {
			uid: "earshot-stuck", title: "Work is stuck", severity: "critical", window: 86400, above: 0, lasting: "1m", anchor: "work-is-stuck",
			summary: "{{ printf \"%.0f\" .Values.A.Value }} open steps of {{ .Labels.agent }} are stuck.",
			means:   "Nothing comes of this work any more, and it does not wait for a person. The dashboard names each call with the verdict on it and its evidence.",
			board:   "delegations", panel: "Stuck now", pick: "&var-agent={{ urlquery .Labels.agent }}",
			sql: `
SELECT ` + agent + ` AS agent, count() AS stuck
FROM v_open_spans
WHERE ` + leaves("stuck") + `
GROUP BY agent`,
		}, {
			uid: "earshot-loss", title: "Bytes are unaccounted for or dropped", severity: "critical", window: 3600, above: 0, lasting: "0s", anchor: "bytes-are-unaccounted-for-or-dropped",
			summary: "{{ humanize1024 .Values.A.Value }}B that the source {{ .Labels.source }} read became neither messages nor dead letters.",
			means:   "Rows are missing. Streams that dropped bytes in the last hour have a reason, such as a full disk; unaccounted ones, of any time, are a bug of Earshot. The dashboard has the account of each source.",
			board:   "self", panel: "Account of the sources",
			sql: `
SELECT source, sum(abs(unaccounted_bytes)) + sumIf(dropped_bytes, $__timeFilter_ms(dropped_at)) AS lost_bytes
FROM source_ledger FINAL
WHERE $__timeFilter_ms(seen_at)
GROUP BY source`,
		}, {
			uid: "earshot-dead-letters", title: "Input cannot be decoded", severity: "warning", window: 900, above: 0, lasting: "0s", anchor: "input-cannot-be-decoded",
			summary: "{{ printf \"%.0f\" .Values.A.Value }} frames of the source {{ .Labels.source }} could not be decoded in the last 15 minutes.",
			means:   "They are kept with their bytes, and are missing in every number. The dashboard has each with its reason; many with one reason are a new version of an agent.",
			board:   "self", panel: "Latest dead letters",
			sql: `
SELECT source, count() AS letters
FROM v_dead_letters
WHERE $__timeFilter_ms(ts) AND NOT resolved
GROUP BY source`,
		}, {
			uid: "earshot-lag", title: "Messages come late", severity: "warning", window: 900, above: 90, lasting: "5m", anchor: "messages-come-late",
			summary: "Messages of the source {{ .Labels.source }} can be queried {{ humanizeDuration .Values.A.Value }} after they were written (p95 of the last 15 minutes); the limit is 1m 30s.",
			means:   "What the dashboards show is that much behind, and so is every alert. The dashboard has the lag over time; the exporter that waits is in the metrics of the sidecar.",
			board:   "self", panel: "Lag",
			sql: listening + `
SELECT source, quantileExact(0.95)(dateDiff('millisecond', ts, ingest_ts)) / 1000 AS lag_seconds
FROM messages FINAL
WHERE $__timeFilter_ms(ingest_ts) AND ` + live + ` AND ` + sinceStart + `
GROUP BY source`,
		}, {
			uid: "earshot-dead", title: "Earshot is silent", severity: "critical", window: 3600, above: 5, lasting: "1m", anchor: "earshot-is-silent", silence: true,
			summary: "Earshot has stored no account {{ with .Values.A }}{{ if lt 0.0 .Value }}for {{ printf \"%.0f\" .Value }} minutes{{ else }}yet{{ end }}{{ else }}yet{{ end }}; it draws one every minute.",
			means:   "The sidecar is dead, has nothing to read, or cannot deliver: other alerts see nothing either. The dashboard has the latest message; earshot doctor names the reason.",
			board:   "self", panel: "Latest message",
			sql: `
SELECT dateDiff('second', max(seen_at), now()) / 60 AS minutes
FROM source_ledger
HAVING count() > 0`,
		}, {
			uid: "earshot-changed", title: "An agent or a tool changed", severity: "warning", window: 86400, above: 0, lasting: "0s", anchor: "an-agent-or-a-tool-changed",
			summary: "{{ .Labels.what }}: {{ .Labels.metric }} up by {{ printf \"%.1f\" .Values.A.Value }} % {{ .Labels.version }}.",
			means:   "Its runs differ from those before by more than chance. The dashboard has the time of new versions in its charts; the page Changes of earshot ui has the sizes, and a trace of either side.",
			board:   "delegations", panel: "Latency", pick: "&var-agent={{ urlquery .Labels.agent }}",
			sql: `
SELECT agent_name AS agent, concat(agent_name, if(name = '', '', concat(', ', name))) AS what, metric, if(empty(since), 'with no new version', concat('since ', arrayStringConcat(since, ', '))) AS version,
  max(round(100 * if(ratio > 0, ratio - 1, mean_after - mean_before), 1)) AS percent
FROM v_changes
WHERE $__timeFilter_ms(found) AND metric IN ('duration', 'errors', 'tokens')
GROUP BY agent, what, metric, version`,
		}, {
			uid: "earshot-cost", title: "Agents spend much", severity: "warning", window: 3600, above: 50, lasting: "0s", anchor: "agents-spend-much",
			summary: "{{ .Labels.agent }} spent {{ printf \"%.2f\" .Values.A.Value }} dollars in the last hour; the limit is 50.",
			means:   "As records state it, else at the prices of model_prices. The dashboard has the conversations that cost most, and how much of their input came from caches.",
			board:   "tokens", panel: "By conversation", pick: "&var-agent={{ urlquery .Labels.agent }}",
			sql: `
SELECT ` + agent + ` AS agent, sum(cost_picodollars) / 1e12 AS dollars
FROM v_usage
WHERE $__timeFilter_ms(ts)
GROUP BY agent`,
		},
	}
}

// where is the dashboard that the rule leads to, and its panel.
func (r rule) where() (uid string, panel int, err error) {
	for _, d := range All() {
		for _, p := range d.Panels {
			if d.UID == "earshot-"+r.board && p.Title == r.panel {
				return d.UID, p.ID, nil
			}
		}
	}
	return "", 0, fmt.Errorf("alerts: %s: there is no panel %s / %s", r.title, r.board, r.panel)
}

// alerts writes the rules as Grafana provisions them.
func alerts() ([]byte, error) {
	group := map[string]any{"orgId": 1, "name": "earshot", "folder": "Earshot", "interval": "1m"}
	var list []any
	for _, r := range rules() {
		board, panel, err := r.where()
		if err != nil {
			return nil, err
		}
		without := "OK"
		if r.silence {
			without = "Alerting"
		}
		list = append(list, map[string]any{
			"uid": r.uid, "title": r.title, "condition": "C", "for": r.lasting, "noDataState": without, "execErrState": "Error",
			"dashboardUid": board, "panelId": panel,
			"labels": map[string]string{"severity": r.severity},
			"annotations": map[string]string{
				"summary":     r.summary,
				"description": r.means + " {{ externalURL }}d/" + board + "?from=now-" + strconv.Itoa(max(r.window, 3600)) + "s&to=now" + r.pick,
				"runbook_url": runbook + "#" + r.anchor,
			},
			"data": []any{
				map[string]any{
					"refId": "A", "datasourceUid": SourceUID, "relativeTimeRange": map[string]int{"from": r.window, "to": 0},
					"model": map[string]any{
						"refId": "A", "editorType": "sql", "queryType": "table", "format": int(grafana.AsTable), "rawSql": sql(r.sql),
						"datasource": map[string]string{"type": grafana.PluginID, "uid": SourceUID}, "pluginVersion": grafana.PluginVersion,
					},
				},
				map[string]any{
					"refId": "C", "datasourceUid": "__expr__",
					"model": map[string]any{
						"refId": "C", "type": "threshold", "expression": "A",
						"conditions": []any{map[string]any{"evaluator": map[string]any{"type": "gt", "params": []float64{r.above}}}},
					},
				},
			},
		})
	}
	group["rules"] = list
	var b bytes.Buffer
	b.WriteString("# Written by go generate ./dashboards; edits go to dashboards/internal/boards/alerts.go.\n# The remedy for each rule: docs/runbook.md.\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(map[string]any{"apiVersion": 1, "groups": []any{group}}); err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	return b.Bytes(), nil
}
