package scaffold

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder/conformance"
)

// Outside of a checkout the new module has the source that it needs: without a network, and
// with nothing edited, it builds, passes its own tests, and passes the suite as an executable.
func TestTheScaffoldPassesTheSuite(t *testing.T) {
	dir := t.TempDir()
	written, err := write(dir, Settings{Name: "my-format", Module: "example.org/my-format"})
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "my-format")
	if len(written) != 9 {
		t.Errorf("wrote %q", written)
	}
	run(t, root, "go", "vet", "./...")
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

// The new module requires the modules that the SDK and the tests of a decoder import, and no
// others: it builds without `go mod tidy`.
func TestRequirementsAreThoseOfTheSDK(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}",
		"github.com/earshot-dev/earshot/core/decoder/decodertest", "github.com/earshot-dev/earshot/core/sdk/...")
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off") // with the network: a new checkout may lack go.mod files of the others
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	imported := strings.Fields(string(out))
	slices.Sort(imported)
	if imported = slices.Compact(imported); !slices.Equal(imported, sdkModules) {
		t.Errorf("the SDK imports\n%q, sdkModules are\n%q", imported, sdkModules)
	}
}

// A golden that is wrong or missing fails the test; -update repairs it and fails
// once more, so that the author reads each change before keeping it.
func TestUpdateRewritesAndFails(t *testing.T) {
	dir := t.TempDir()
	here := strings.TrimSpace(run(t, ".", "go", "list", "-m", "-f", "{{.Dir}}"))
	if _, err := write(dir, Settings{Name: "acme", Replace: here}); err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "acme")
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
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func write(dir string, s Settings) ([]string, error) {
	d, err := New(s)
	if err != nil {
		return nil, err
	}
	return d.Write(dir)
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o755); err != nil {
		t.Fatal(err)
	}
	for want, list := range map[string][]Settings{
		"want lower case letters":                    {{}, {Name: "Big"}, {Name: "a b"}, {Name: "../x"}, {Name: "1st"}, {Name: "-x"}, {Name: "ä"}},
		"not one of go, python, typescript":          {{Name: "acme", Language: "cobol"}},
		"malformed import path":                      {{Name: "acme", Module: "a b"}, {Name: "acme", Module: "/acme"}},
		"has no source of Earshot":                   {{Name: "acme", Replace: dir}, {Name: "acme", Replace: filepath.Join(dir, "none")}},
		"of a decoder in Go, not in python":          {{Name: "acme", Language: "python", Module: "acme"}, {Name: "acme", Language: "python", Replace: "."}},
		"taken is there already, and stays as it is": {{Name: "taken"}, {Name: "taken", Language: "python"}},
	} {
		for _, s := range list {
			if _, err := write(dir, s); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: error %v, want %q", s, err, want)
			}
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v, %v: a refused decoder is there", list, err)
	}
}

// TestNameOfAPackage: a format may have the name of a package of Go's, or one that Windows reserves.
func TestNameOfAPackage(t *testing.T) {
	here := strings.TrimSpace(run(t, ".", "go", "list", "-m", "-f", "{{.Dir}}"))
	for _, name := range []string{"fmt", "main", "con"} {
		dir := t.TempDir()
		if _, err := write(dir, Settings{Name: name, Replace: here}); err != nil {
			t.Fatal(err)
		}
		run(t, filepath.Join(dir, name), "go", "vet", "./...")
	}
}
