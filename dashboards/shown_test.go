package dashboards

import (
	"slices"
	"strings"
	"testing"
)

// TestBoardsShow lists the purpose of each dashboard: a panel of that kind,
// a column that it has, a variable. A board that loses one is another board.
func TestBoardsShow(t *testing.T) {
	type panel struct{ kind, title, column string }
	all := queries(t)
	for file, want := range map[string]struct {
		panels    []panel
		variables []string
	}{
		"delegations.json": {[]panel{
			{"table", "By pair", "p50"}, {"table", "By pair", "p95"}, {"table", "By pair", "p99"}, {"timeseries", "p95 by pair", "p95"}, {"heatmap", "How long delegations take", "30 min"},
			{"table", "Slowest", "Trace"}, {"stat", "In flight", "running"}, {"stat", "Stuck", "stuck"}, {"table", "Stuck now", "Silent"}, {"table", "Waiting for a person now", "Silent"}, {"timeseries", "Fan-out", "widest"},
			{"nodeGraph", "Who calls whom", "mainstat"}, {"annotation", "New versions of agents", "agent_version"}, {"annotation", "Starts of Earshot", "since"}, {"annotation", "Findings", "v_findings"},
		}, []string{"format", "agent", "tenant", "project", "version"}},
		"trace.json": {[]panel{{"traces", "Waterfall", "spanID"}, {"table", "Critical path", "Time"}, {"table", "Messages", "Text"}}, []string{"trace_id"}},
		"tools.json": {[]panel{
			{"table", "By tool", "Calls"}, {"table", "By tool", "Failed"}, {"table", "By tool", "p95"}, {"table", "By tool", "Mean result"}, {"table", "By tool", "Retries"},
			{"table", "By agent", "Agent"}, {"table", "By model", "Model"}, {"table", "By MCP server", "Server"},
		}, []string{"format", "agent", "model", "tool", "tenant", "project", "version"}},
		"tokens.json": {[]panel{
			{"timeseries", "Tokens", "read from cache"}, {"timeseries", "Cost", "cost"}, {"table", "By model", "Reasoning"}, {"table", "By agent", "Cost"}, {"table", "By conversation", "Session"}, {"table", "Prices", "Origin"},
		}, []string{"format", "agent", "model"}},
		"sessions.json":  {[]panel{{"table", "Conversations", "Begins with"}, {"table", "Turns", "Answer"}, {"table", "Transcript", "Turn"}}, []string{"search", "session", "steps"}},
		"streaming.json": {[]panel{{"heatmap", "First token", "1 s"}, {"stat", "Gap between chunks, p95", "p95"}, {"table", "Responses that stalled longest", "Longest stall"}, {"table", "Stalled now", "Silent"}}, []string{"model"}},
		"self.json": {[]panel{
			{"timeseries", "Lag", "p95"}, {"stat", "Bytes unaccounted for", "unaccounted"}, {"table", "Account of the sources", "Unaccounted"}, {"table", "Latest dead letters", "Payload"}, {"table", "Decoders", "Problems"},
		}, []string{"format"}},
	} {
		board := boardFiles(t)[file]
		if board == nil {
			t.Errorf("no %s", file)
			continue
		}
		for _, p := range want.panels {
			if !slices.ContainsFunc(all, func(a asked) bool {
				return a.board == file && a.kind == p.kind && a.title == p.title && strings.Contains(a.sql, p.column)
			}) {
				t.Errorf("%s: no %s %q with a column %q", file, p.kind, p.title, p.column)
			}
		}
		for _, name := range want.variables {
			found := false
			for _, v := range board.Templating.List {
				found = found || v.Name == name
			}
			if !found {
				t.Errorf("%s: no variable %s", file, name)
			}
		}
	}
}
