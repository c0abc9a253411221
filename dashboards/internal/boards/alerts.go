package boards

import (
	"bytes"
	"fmt"

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
	summary              string  // without $, which provisioning takes for the environment's
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
			summary: "p95 of {{ .Labels.pair }} is {{ .Values.A }} s over the last 30 minutes.",
			sql: `
SELECT ` + pair + ` AS pair, quantileExact(0.95)(duration_ms) / 1000 AS p95_seconds
FROM v_delegations
WHERE $__timeFilter_ms(ts) AND status != 'running' AND NOT async
GROUP BY pair
HAVING count() >= 5`,
		}, {
			uid: "earshot-delegation-errors", title: "Delegations fail", severity: "critical", window: 1800, above: 0.2, lasting: "5m", anchor: "delegations-fail",
			summary: "{{ .Values.A }} of the delegations to {{ .Labels.delegate }} failed in the last 30 minutes.",
			sql: `
SELECT delegate_to AS delegate, countIf(` + failed + `) / count() AS failed
FROM v_delegations
WHERE $__timeFilter_ms(ts) AND status != 'running'
GROUP BY delegate
HAVING count() >= 5`,
		}, {
			uid: "earshot-tool-errors", title: "A tool fails", severity: "warning", window: 1800, above: 0.3, lasting: "10m", anchor: "a-tool-fails",
			summary: "{{ .Values.A }} of the calls of {{ .Labels.tool }} failed in the last 30 minutes.",
			sql: `
SELECT tool_name AS tool, countIf(` + failed + `) / count() AS failed
FROM v_tool_calls
WHERE $__timeFilter_ms(ts) AND status != 'running' AND NOT is_delegation
GROUP BY tool
HAVING count() >= 10`,
		}, {
			uid: "earshot-stuck", title: "Work is stuck", severity: "critical", window: 86400, above: 0, lasting: "1m", anchor: "work-is-stuck",
			summary: "{{ .Values.A }} pieces of work of {{ .Labels.agent }} are stuck.",
			sql: `
SELECT ` + agent + ` AS agent, count() AS stuck
FROM v_open_spans
WHERE ` + leaves("stuck") + `
GROUP BY agent`,
		}, {
			uid: "earshot-loss", title: "Bytes are unaccounted for or dropped", severity: "critical", window: 3600, above: 0, lasting: "0s", anchor: "bytes-are-unaccounted-for-or-dropped",
			summary: "{{ .Values.A }} bytes of {{ .Labels.source }} became neither messages nor dead letters.",
			sql: `
SELECT source, abs(unaccounted_bytes) + dropped_bytes AS lost_bytes
FROM v_sources
WHERE $__timeFilter_ms(last_seen)`,
		}, {
			uid: "earshot-dead-letters", title: "Input cannot be decoded", severity: "warning", window: 900, above: 0, lasting: "0s", anchor: "input-cannot-be-decoded",
			summary: "{{ .Values.A }} frames of {{ .Labels.source }} were set aside in the last 15 minutes.",
			sql: `
SELECT source, count() AS letters
FROM v_dead_letters
WHERE $__timeFilter_ms(ts) AND NOT resolved
GROUP BY source`,
		}, {
			uid: "earshot-lag", title: "Messages come late", severity: "warning", window: 900, above: 90, lasting: "5m", anchor: "messages-come-late",
			summary: "p95 from written to queryable is {{ .Values.A }} s for {{ .Labels.source }}.",
			sql: listening + `
SELECT source, quantileExact(0.95)(dateDiff('millisecond', ts, ingest_ts)) / 1000 AS lag_seconds
FROM messages FINAL
WHERE $__timeFilter_ms(ingest_ts) AND ` + live + ` AND ` + sinceStart + `
GROUP BY source`,
		}, {
			uid: "earshot-dead", title: "Earshot is silent", severity: "critical", window: 3600, above: 5, lasting: "1m", anchor: "earshot-is-silent", silence: true,
			summary: "Earshot has drawn no account for {{ .Values.A }} minutes; it draws one every minute.",
			sql: `
SELECT dateDiff('second', max(seen_at), now()) / 60 AS minutes
FROM source_ledger
HAVING count() > 0`,
		}, {
			uid: "earshot-changed", title: "An agent or a tool changed", severity: "warning", window: 86400, above: 0, lasting: "0s", anchor: "an-agent-or-a-tool-changed",
			summary: "{{ .Labels.what }}: {{ .Labels.metric }} up by {{ .Values.A }} % {{ .Labels.version }}.",
			sql: `
SELECT concat(agent_name, if(name = '', '', concat(', ', name))) AS what, metric, if(empty(since), 'with no new version', concat('since ', arrayStringConcat(since, ', '))) AS version,
  max(round(100 * if(ratio > 0, ratio - 1, mean_after - mean_before), 1)) AS percent
FROM v_changes
WHERE $__timeFilter_ms(found) AND metric IN ('duration', 'errors', 'tokens')
GROUP BY what, metric, version`,
		}, {
			uid: "earshot-cost", title: "Agents spend much", severity: "warning", window: 3600, above: 50, lasting: "0s", anchor: "agents-spend-much",
			summary: "{{ .Labels.agent }} spent {{ .Values.A }} dollars in the last hour.",
			sql: `
SELECT ` + agent + ` AS agent, sum(cost_picodollars) / 1e12 AS dollars
FROM v_usage
WHERE $__timeFilter_ms(ts)
GROUP BY agent`,
		},
	}
}

// alerts writes the rules as Grafana provisions them.
func alerts() ([]byte, error) {
	group := map[string]any{"orgId": 1, "name": "earshot", "folder": "Earshot", "interval": "1m"}
	var list []any
	for _, r := range rules() {
		without := "OK"
		if r.silence {
			without = "Alerting"
		}
		list = append(list, map[string]any{
			"uid": r.uid, "title": r.title, "condition": "C", "for": r.lasting, "noDataState": without, "execErrState": "Error",
			"labels": map[string]string{"severity": r.severity},
			"annotations": map[string]string{
				"summary":     r.summary,
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
