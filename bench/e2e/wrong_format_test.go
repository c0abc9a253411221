package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestWrongFormat: every command of a user reports files that do not fit their source's format,
// and paths that match no file.
func TestWrongFormat(t *testing.T) {
	h := newHome(t).configure("sources:",
		`  - {name: garden, type: file, format: claude-code, paths: ["DIR/in/*.jsonl"]}`,
		`  - {name: attic, type: file, format: codex, paths: ["DIR/none/**"]}`)
	var lines strings.Builder
	fmt.Fprintln(&lines, `{"timestamp":"2026-03-01T10:00:00.000Z","type":"session_meta","payload":{"id":"0199cc00-0000-7000-8000-0000000000a1","cwd":"/srv/shed","cli_version":"0.50.0"}}`)
	for i := range 9 {
		fmt.Fprintf(&lines, `{"timestamp":"2026-03-01T10:00:%02d.000Z","type":"event_msg","payload":{"type":"agent_message","message":"row %d is sown"}}`+"\n", i+1, i)
	}
	h.write("in/rollout-2026-03-01T10-00-00-0199cc00-0000-7000-8000-0000000000a1.jsonl", lines.String())
	const (
		wrong = "source garden: 10 of 10 messages are unknown to claude-code: is the format right? (codex decodes them)"
		none  = "source attic: no file matches its paths"
	)
	for _, command := range [][]string{{"validate"}, {"run", "--until-idle", "300ms"}, {"sessions"}} {
		out := h.waitExit(h.start(command...)) // and its status is 0
		for _, want := range []string{wrong, none} {
			if strings.Count(out, want) != 1 {
				t.Errorf("%v does not report %q once:\n%s", command, want, out)
			}
		}
	}
	found, well := h.doctor()
	if well || !has(found, "fail formats "+wrong) || !has(found, "fail files "+none) {
		t.Errorf("doctor: %q", found)
	}
}
