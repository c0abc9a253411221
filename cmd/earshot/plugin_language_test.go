//go:build python || typescript

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A new decoder in Python passes the suite with nothing edited. Its packages are installed as
// its README has it: by pip, or where that has none, by the system's packages.
func TestNewPythonDecoder(t *testing.T) {
	root := newDecoder(t, "python")
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	python := filepath.Join(root, "venv", "bin", "python")
	out, err := command(t, root, "sh", "-c", "python3 -m venv venv && venv/bin/pip install --retries 0 -q -r requirements.txt")
	if err != nil {
		t.Logf("no packages by pip, the system's are used: %s", out)
		python = "/usr/bin/python3"
	}
	passes(t, root, python, "decoder.py")
}

// A new decoder in TypeScript passes the suite with nothing edited. Its packages are installed
// by npm.
func TestNewTypeScriptDecoder(t *testing.T) {
	root := newDecoder(t, "typescript")
	if out, err := command(t, root, "sh", "-c", "npm install --no-audit --no-fund && npm run build"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	passes(t, root, "node", "dist/decoder.js")
}

// newDecoder writes a new decoder outside of the checkout and returns its folder.
func newDecoder(t *testing.T, language string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := earshot(t, "plugin", "new", "acme", "--dir", dir, "--language", language); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "acme")
}

// passes runs `plugin test` on the decoder as it is, and again after `plugin test --update` has
// written the golden file that was removed.
func passes(t *testing.T, root, exe, program string) {
	t.Helper()
	t.Chdir(root)
	test := []string{"plugin", "test", "--exec", exe, "--arg", program, "--testdata", "testdata"}
	if out, err := earshot(t, test...); err != nil || !strings.Contains(out, " 0 failed") {
		t.Fatalf("%v\n%s", err, out)
	}
	golden := filepath.Join("testdata", "hello", "want.jsonl")
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(golden); err != nil {
		t.Fatal(err)
	}
	if out, err := earshot(t, test...); err == nil || !strings.Contains(out, "earshot plugin test --update") {
		t.Errorf("without a golden file: %v\n%s", err, out)
	}
	if out, err := earshot(t, append(test, "--update")...); err != nil || out != golden+"\n" {
		t.Errorf("--update: %v\n%s", err, out)
	}
	if again, err := os.ReadFile(golden); err != nil || !bytes.Equal(again, want) {
		t.Errorf("%v: the golden file is\n%s", err, again)
	}
}

func earshot(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func command(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	return string(out), err
}
