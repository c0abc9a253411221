package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEngineIsFetched starts a store that has no engine, a double of earshot-store's exit codes and flags:
// the engine is fetched where that is announced, and is else an error with the command that mends it.
func TestEngineIsFetched(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("npm_config_registry", "http://127.0.0.1:1/")
	t.Setenv("A_SECRET", "s3cret")
	binary := filepath.Join(dir, "store")
	script := `#!/bin/sh
if [ "$1" = --fetch ]; then
	[ -z "$A_SECRET" ] && [ -n "$PATH" ] && [ "$npm_config_registry" = http://127.0.0.1:1/ ] || exit 1
	[ -e "$HOME/offline" ] && { echo "earshot-store: engine: no route" >&2; exit 1; }
	echo "Fetching it, 180 MB"
	touch "$HOME/engine"
	exit
fi
case "$*" in *"--engine $HOME/path/clickhouse"*) echo listening on nothing; exec cat ;; esac
[ -e "$HOME/engine" ] || { echo "earshot-store: no engine: type x" >&2; exit 3; }
echo listening on nothing
exec cat
`
	if err := os.WriteFile(binary, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	s := Settings{Dir: filepath.Join(dir, "data"), Binary: binary}
	if _, err := Open(t.Context(), s); err == nil || err.Error() != "store: no engine: type x" {
		t.Errorf("nothing may be fetched: %v", err)
	}
	var out strings.Builder
	s.Fetch = &out
	offline := filepath.Join(dir, "offline")
	if err := os.WriteFile(offline, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), s); err == nil || !strings.Contains(err.Error(), "(engine: no route): type `earshot store fetch`") {
		t.Errorf("offline: %v", err)
	}
	// A clickhouse in PATH is the last resort.
	path := filepath.Join(dir, "path")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "clickhouse"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := os.Getenv("PATH")
	t.Setenv("PATH", path+":"+before)
	if st, err := Open(t.Context(), s); err != nil {
		t.Errorf("with clickhouse in PATH: %v", err)
	} else {
		st.Close()
	}
	t.Setenv("PATH", before)
	if err := os.Remove(offline); err != nil {
		t.Fatal(err)
	}
	st, err := Open(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	st.Close()
	if out.String() != "Fetching it, 180 MB\n" {
		t.Errorf("announced %q", out.String())
	}
}
