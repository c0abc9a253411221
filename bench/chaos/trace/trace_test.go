//go:build linux

package trace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestKilledAtACall kills a program of two writes and a sync before and after each of them: the
// file has the bytes written until then.
func TestKilledAtACall(t *testing.T) {
	if os.Getenv("TRACED") != "" {
		f, err := os.Create(os.Getenv("TRACED"))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{"a", "b"} {
			if _, err := f.WriteString(s); err != nil {
				t.Fatal(err)
			}
			_ = f.Sync()
		}
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range []string{"", "a", "a", "a", "a", "ab", "ab", "ab", "ab"} {
		path := filepath.Join(t.TempDir(), "f")
		t.Setenv("TRACED", path)
		var seen []string
		killed, err := Run(Program{Path: exe, Args: []string{"-test.run=TestKilledAtACall"}, See: func(_ int, c Call) bool {
			if c.File != path {
				return false
			}
			seen = append(seen, c.Name)
			return len(seen) == n+1
		}})
		got, readErr := os.ReadFile(path)
		if err != nil || readErr != nil || killed != (n < 8) || string(got) != want {
			t.Errorf("at %d: %q, killed %v, %v %v (%s)", n, got, killed, err, readErr, strings.Join(seen, " "))
		}
	}
}
