package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// runIn runs earshot in a directory, with a user's arguments, and returns its output and exit
// code.
func (h *home) runIn(dir string, args ...string) (out string, code int) {
	h.Helper()
	return h.runAt(filepath.Join(bin, "earshot"), dir, args...)
}

// runAt is runIn of another program.
func (h *home) runAt(program, dir string, args ...string) (out string, code int) {
	h.Helper()
	c := exec.CommandContext(h.Context(), program, args...)
	c.Dir, c.Env = dir, append(os.Environ(), h.env...)
	b, err := c.CombinedOutput()
	if c.ProcessState == nil {
		h.Fatal(err)
	}
	return string(b), c.ProcessState.ExitCode()
}

// TestTimesAreLocal prints the same session in two zones, which the output names.
func TestTimesAreLocal(t *testing.T) {
	h := newHome(t).configure("sources:", files("claude-code", "projects/*/*.jsonl"))
	h.write("projects/p/s.jsonl", transcript("s", 1))
	h.drain()
	h.env = append(h.env, "TZ=America/New_York")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"sessions"}, "STARTED (EST)"}, {[]string{"sessions"}, "2026-11-02 05:00"}, {[]string{"sessions", "--utc"}, "STARTED (UTC)"}, {[]string{"sessions", "--utc"}, "2026-11-02 10:00"},
		{[]string{"show", "s"}, "2026-11-02 05:00:00 EST"}, {[]string{"show", "s", "--utc"}, "2026-11-02 10:00:00 UTC"}, {[]string{"tail", "--once"}, "2026-11-02 05:00"},
	} {
		out, code := h.runIn(h.dir, append(c.args, "-c", h.path("earshot.yaml"))...)
		if code != 0 || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit %d, no %q in\n%s", c.args, code, c.want, out)
		}
		h.serve() // the first command has started it
	}
}

// TestSameStoreFromAnyDirectory runs with a relative data_dir and queries from elsewhere.
func TestSameStoreFromAnyDirectory(t *testing.T) {
	h := newHome(t)
	h.write("conf/earshot.yaml", "data_dir: ./earshot-data\ntelemetry: {listen: \"\"}\nsources: [{name: c, type: file, format: claude-code, paths: [\"../projects/*/*.jsonl\"]}]\n")
	h.write("projects/p/s.jsonl", transcript("s", 1))
	h.prepareData(h.path("conf/earshot-data"))
	if out, code := h.runIn(t.TempDir(), "run", "--until-idle", "300ms", "-c", h.path("conf/earshot.yaml")); code != 0 {
		t.Fatalf("exit %d\n%s", code, out)
	}
	h.env = append(h.env, "EARSHOT_CONFIG="+h.path("conf/earshot.yaml"))
	for _, dir := range []string{h.dir, t.TempDir(), h.path("conf")} {
		if out, code := h.runIn(dir, "sessions"); code != 0 || !strings.Contains(out, "how many?") {
			t.Errorf("from %s: exit %d\n%s", dir, code, out)
		}
	}
}

// TestDefaultMetricsAddressIsTaken starts beside another program on the default port of the
// metrics: the sidecar uses and logs another one, and top finds them. An address from the file
// is an error with its key.
func TestDefaultMetricsAddressIsTaken(t *testing.T) {
	if l, err := net.Listen("tcp", "127.0.0.1:9464"); err == nil { // else it is taken already
		defer l.Close()
	}
	h := newHome(t)
	h.prepareData(h.path("data"))
	h.write("earshot.yaml", "data_dir: "+h.path("data")+"\nsources: [{name: c, type: file, format: claude-code, paths: [\""+h.path("projects")+"/*/*.jsonl\"]}]\n")
	h.write("projects/p/s.jsonl", transcript("s", 1))
	p := h.start("run")
	h.until("it runs", func() bool { return strings.Contains(p.out.String(), "msg=running") })
	if out := p.out.String(); !strings.Contains(out, "telemetry.listen decides it") {
		t.Errorf("the other address is not logged:\n%s", out)
	}
	if out, code := h.runIn(h.dir, "top", "-c", h.path("earshot.yaml")); code != 0 || !strings.Contains(out, "sidecar: ") {
		t.Errorf("top: exit %d\n%s", code, out)
	}
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	if out, code := h.runIn(h.dir, "top", "-c", h.path("earshot.yaml")); code != 0 || !strings.Contains(out, "no sidecar runs") {
		t.Errorf("top without a sidecar: exit %d\n%s", code, out)
	}
	h.add("earshot.yaml", "telemetry: {listen: \"127.0.0.1:9464\"}\n")
	if out, code := h.runIn(h.dir, "run", "--until-idle", "300ms", "-c", h.path("earshot.yaml")); code != 1 || !strings.Contains(out, "telemetry.listen names another address") {
		t.Errorf("a named address: exit %d\n%s", code, out)
	}
}

// TestValidateLooksAtTheMachine has a port taken, a data directory that is a file and no
// engine: validate reports each with its key, and passes when all is well.
func TestValidateLooksAtTheMachine(t *testing.T) {
	l, err := net.Listen("tcp", freeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := newHome(t)
	h.write("file", "")
	tap := fmt.Sprintf("  - {name: t, type: tap, format: agno, listen: %q, upstream: \"http://127.0.0.1:1\"}", l.Addr())
	h.write("earshot.yaml", "data_dir: file/data\nsources:\n"+tap+"\n")
	out, code := h.runIn(h.dir, "validate", "-c", h.path("earshot.yaml"))
	if code != 1 || !strings.Contains(out, "data_dir: ") || !strings.Contains(out, "sources[0].listen: ") {
		t.Errorf("exit %d\n%s", code, out)
	}
	h.env = []string{"EARSHOT_ENGINE_DIR=" + h.dir}
	h.write("earshot.yaml", "data_dir: data\nstore: {binary: "+h.path("file")+"}\nsources:\n"+strings.Replace(tap, l.Addr().String(), freeAddress(t), 1)+"\n")
	if out, code := h.runIn(h.dir, "validate", "-c", h.path("earshot.yaml")); code != 1 || !strings.Contains(out, "store: ") || strings.Contains(out, "listen") {
		t.Errorf("exit %d\n%s", code, out)
	}
	h.env = nil
	h.write("earshot.yaml", "data_dir: data\nsources:\n"+strings.Replace(tap, l.Addr().String(), freeAddress(t), 1)+"\n")
	if out, code := h.runIn(h.dir, "validate", "-c", h.path("earshot.yaml")); code != 0 || !strings.Contains(out, "valid") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestUnknownFormatMakesNothing refuses a format before there is a data directory, with
// the exit code of a wrong configuration.
func TestUnknownFormatMakesNothing(t *testing.T) {
	h := newHome(t).configure("sources:", `  - {name: x, type: file, format: claud-code, paths: ["DIR/*.jsonl"]}`).fresh()
	out, code := h.runIn(h.dir, "run", "-c", h.path("earshot.yaml"))
	if code != 2 || !strings.Contains(out, "claud-code") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if _, err := os.Stat(h.path("data")); err == nil {
		t.Error("a data directory was made")
	}
}

// TestNewPlugin follows the printed step of `plugin new`, in a checkout and outside of any,
// without a network. It writes the golden file of its case with `plugin test --update`, and passes.
func TestNewPlugin(t *testing.T) {
	h := newHome(t)
	here, err := filepath.Abs("../..")
	h.must(err)
	b, err := os.ReadFile(filepath.Join(bin, "earshot"))
	h.must(err)
	h.must(os.WriteFile(h.path("earshot"), b, 0o755)) // bin may be in the checkout
	for name, args := range map[string][]string{"checkout": {"--replace", here}, "release": nil} {
		out, code := h.runAt(h.path("earshot"), h.dir, append([]string{"plugin", "new", name}, args...)...)
		if code != 0 || !strings.HasSuffix(out, "\nNext:\n  cd "+name+" && go test\n") {
			t.Fatalf("%s: exit %d\n%s", name, code, out)
		}
		if _, err := os.Stat(h.path(name + "/earshot/go.mod")); (err == nil) != (args == nil) {
			t.Errorf("%s: the source of Earshot: %v", name, err)
		}
		for _, args := range [][]string{{"test"}, {"build", "-o", "decoder", "."}} {
			c := exec.CommandContext(t.Context(), "go", args...)
			c.Dir = h.path(name)
			c.Env = append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "CGO_ENABLED=0")
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%s: go %v: %v\n%s", name, args, err, out)
			}
		}
		h.must(os.Remove(h.path(name + "/testdata/hello/want.jsonl")))
		test := []string{"plugin", "test", "--exec", "./decoder", "--testdata", "testdata"}
		if out, code := h.runIn(h.path(name), test...); code != 1 || !strings.Contains(out, "--update") {
			t.Errorf("%s: without a golden file: exit %d\n%s", name, code, out)
		}
		if out, code := h.runIn(h.path(name), append(test, "--update")...); code != 0 {
			t.Errorf("%s: --update: exit %d\n%s", name, code, out)
		}
		if out, code := h.runIn(h.path(name), test...); code != 0 {
			t.Errorf("%s: with it: exit %d\n%s", name, code, out)
		}
	}
}

// TestFirstDecoder follows docs/first-decoder.md literally: it runs the sh blocks in one shell,
// saves the diff, and finds the text blocks in the output of the block before.
func TestFirstDecoder(t *testing.T) {
	h := newHome(t)
	page, err := os.ReadFile("../../docs/first-decoder.md")
	h.must(err)
	dir, out, blocks := h.dir, "", 0
	for _, b := range regexp.MustCompile("(?ms)^```(sh|diff|text)\n(.*?)^```$").FindAllSubmatch(page, -1) {
		blocks++
		switch text := string(b[2]); string(b[1]) {
		case "sh":
			c := exec.CommandContext(t.Context(), "sh", "-ec", text+"\npwd > "+h.path("pwd"))
			c.Dir = dir
			c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GOPROXY=off", "GOFLAGS=")
			raw, err := c.CombinedOutput()
			if out = string(raw); err != nil {
				t.Fatalf("%v\n%s%s", err, text, out)
			}
			pwd, err := os.ReadFile(h.path("pwd"))
			h.must(err)
			dir = strings.TrimSpace(string(pwd))
		case "diff":
			h.must(os.WriteFile(filepath.Join(dir, "calls.diff"), b[2], 0o644))
		case "text":
			if !strings.Contains(out, text) {
				t.Errorf("the output has no\n%s, it is\n%s", text, out)
			}
		}
	}
	if blocks != 8 {
		t.Errorf("%d blocks were run", blocks)
	}
}
