package dashboards

import (
	"fmt"
	"os"
	"testing"
)

// TestColumnsOfTranscripts reads the facts of a conversation that its transcript states, and
// their consequences, through the views.
func TestColumnsOfTranscripts(t *testing.T) {
	w := theWorld(t)
	c := w.reader(t)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for sql, want := range map[string]string{
		"SELECT project, branch, title, agent_version, host FROM v_sessions WHERE session_id = '" + lighthouse + "'":      fmt.Sprintf("[[/srv/lighthouse lamps Lamps of the piers 2.1.229 %s]]", host),
		"SELECT project, branch, title, agent_version, host FROM v_session_facts WHERE session_id = '" + lighthouse + "'": fmt.Sprintf("[[/srv/lighthouse lamps Lamps of the piers 2.1.229 %s]]", host),
		// Three responses of the turn and two of the agent below it.
		"SELECT count(), uniqExact(run_id), min(responses), max(responses), any(agent_name), any(project), any(agent_version), sum(delegations) FROM v_turns WHERE session_id = '" + lighthouse + "'": "[[6 6 5 5 claude-code /srv/lighthouse 2.1.229 6]]",
		"SELECT tool_name, error, project, branch, agent_version FROM v_tool_calls WHERE status = 'error' AND NOT is_delegation AND session_id = '" + lighthouse + "'":                                "[[Read pier,lamps /srv/lighthouse lamps 2.1.229]]",
		"SELECT DISTINCT agent_version, branch FROM v_delegations WHERE session_id = '" + lighthouse + "'":                                                                                            "[[2.1.229 lamps]]",
		// The costs of turns are those of v_usage.
		"SELECT ifNull(round(sum(cost_usd), 6) = (SELECT round(sum(cost_usd), 6) FROM v_usage WHERE session_id = '" + lighthouse + "'), false), ifNull(sum(cost_usd) > 0, false) FROM v_turns WHERE session_id = '" + lighthouse + "'": "[[1 1]]",
	} {
		r, err := run(t, c, sql)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if got := fmt.Sprint(r.rows); got != want {
			t.Errorf("%s:\n%s, want\n%s", sql, got, want)
		}
	}
}
