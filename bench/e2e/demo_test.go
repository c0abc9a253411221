package e2e

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDemo runs a newcomer's first command: it ends with a table of sessions, the tree of a
// delegation and the address of the pages, in the folder that it takes by itself.
func TestDemo(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // the second finds the first one's directory
		demo := exec.CommandContext(t.Context(), filepath.Join(bin, "earshot"), "demo")
		demo.Dir = dir
		out, err := demo.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for _, want := range []string{
			`(?m)^SESSION +FORMAT +STARTED`, `(?m)^\S+ +claude-code `, `(?m)^\S+ +legion `, `(?m)^\S+ +agno `, `(?m)^\S+ +llm-message `,
			`delegation → Explore`, `agent .*linked by`, `(?m)^answer `,
		} {
			if !regexp.MustCompile(want).Match(out) {
				t.Errorf("the demo does not show %s:\n%s", want, out)
			}
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "All of it as pages in a browser: ") {
			t.Errorf("the demo ends with %q", last)
		}
	}
}
