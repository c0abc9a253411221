package scaffold

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder/conformance"
)

// The scaffold builds, passes its own tests, and passes the suite as an executable,
// in a module of its own that imports only public packages of this one.
func TestTheScaffoldPassesTheSuite(t *testing.T) {
	dir := t.TempDir()
	written, err := Write(dir, Settings{Name: "my-format", Module: "example.org/my-format", Version: "v0.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "my-format")
	if len(written) != 8 {
		t.Errorf("wrote %q", written)
	}
	attach(t, root)
	run(t, root, "go", "vet", ".")
	if out := run(t, root, "gofmt", "-l", "."); out != "" {
		t.Errorf("not formatted: %s", out)
	}
	if out := run(t, root, "go", "test", "-v", "-count=1", "."); !strings.Contains(out, "--- PASS: TestDecoder/grpc/hello/C5_replay") {
		t.Errorf("the suite did not run:\n%s", out)
	}
	run(t, root, "go", "build", "-o", "my-format", ".")
	results, err := conformance.Test(t.Context(), os.DirFS(filepath.Join(root, "testdata")), 1, nil, filepath.Join(root, "my-format"))
	if err != nil {
		t.Fatal(err)
	}
	if conformance.Failed(results) {
		var out bytes.Buffer
		_ = conformance.Report(&out, results, 1)
		t.Error(out.String())
	}
}

// A golden that is wrong or missing fails the test; -update repairs it and fails
// once more, so that the author reads each change before keeping it.
func TestUpdateRewritesAndFails(t *testing.T) {
	dir := t.TempDir()
	if _, err := Write(dir, Settings{Name: "acme", Version: "v0.0.0"}); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "acme")
	attach(t, root)
	golden := filepath.Join(root, "testdata", "hello", "want.jsonl")
	right, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(golden, bytes.Replace(right, []byte("kettle"), []byte("bottle"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	fails := func(message string, args ...string) {
		t.Helper()
		out, err := command(t, root, "go", append([]string{"test", "-count=1", "-run=TestDecoder", "."}, args...)...)
		if err == nil || !strings.Contains(out, message) {
			t.Errorf("%v: %v, no %q in\n%s", args, err, message, out)
		}
	}
	fails(`porch u-1: content: want "Is the bottle on?", got "Is the kettle on?"`, "-conformance.checks=C1")
	if err := os.Remove(golden); err != nil {
		t.Fatal(err)
	}
	fails("there is no want.jsonl", "-conformance.checks=C1")
	fails("want.jsonl of 1 cases rewritten", "-update")
	if again, err := os.ReadFile(golden); err != nil || !bytes.Equal(again, right) {
		t.Errorf("%v\n%s", err, again)
	}
	run(t, root, "go", "test", "-count=1", "-run=TestDecoder", "-conformance.checks=C1", ".")
}

// attach replaces earshot in the new module by this working copy.
func attach(t *testing.T, root string) {
	t.Helper()
	here := strings.TrimSpace(run(t, ".", "go", "list", "-m", "-f", "{{.Dir}}"))
	sum, err := os.ReadFile(filepath.Join(here, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "go.sum"), sum, 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, root, "go", "mod", "edit", "-replace", "github.com/earshot-dev/earshot="+here)
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := command(t, dir, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func command(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"", "Big", "a b", "../x", "1st", "-x", "ä"} {
		if _, err := Write(dir, Settings{Name: name, Version: "v1.0.0"}); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(dir, Settings{Name: "taken", Version: "v1.0.0"}); err == nil {
		t.Error("a folder was written over")
	}
}
