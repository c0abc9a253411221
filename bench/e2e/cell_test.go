package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestDecodersRunInCells: the bundled decoder of a running sidecar has no privilege to gain, a
// filter of its calls and no capability, and decodes.
func TestDecodersRunInCells(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("cells are Linux's")
	}
	h := newHome(t).configure("sources:", files("claude-code", "projects/*/*.jsonl"))
	h.write("projects/p/s.jsonl", transcript("s", 1))
	p := h.start("run")
	h.until("it runs", func() bool { return strings.Contains(p.out.String(), "msg=running") })
	var decoders []int
	h.until("one decoder, after the one that looked at the beginnings of the files", func() bool {
		decoders = p.children("\x00decoder\x00claude-code\x00")
		return len(decoders) == 1
	})
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", decoders[0]))
	h.must(err)
	for _, want := range []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n", "CapEff:\t0000000000000000\n"} {
		if !bytes.Contains(status, []byte(want)) {
			t.Errorf("no %q in\n%s", want, status)
		}
	}
	h.must(p.Process.Signal(os.Interrupt))
	h.waitExit(p)
	h.drain()
	if out, code := h.runIn(h.dir, "sessions", "-c", h.path("earshot.yaml")); code != 0 || !strings.Contains(out, "how many?") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// TestScriptInACell: a decoder that is a script reads its module once the key is set that its error names.
func TestScriptInACell(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil || runtime.GOOS != "linux" {
		t.Skip("needs Linux and python3")
	}
	h := newHome(t)
	h.write("modules/greeting.py", "print('the module was read', file=__import__('sys').stderr)\n")
	h.write("plugins/acme", "#!/bin/sh\nexec /usr/bin/python3 -B "+h.path("modules/greeting.py")+"\n")
	h.must(os.Chmod(h.path("plugins/acme"), 0o755))
	config := "data_dir: data\nplugin_dir: plugins\nsources: [{name: a, type: file, format: acme, paths: [\"*.jsonl\"]}]\n"
	h.write("earshot.yaml", config)
	out, _ := h.runIn(h.dir, "plugin", "list", "-c", "earshot.yaml")
	if !strings.Contains(out, "plugins.acme.sandbox") || !strings.Contains(out, "Permission denied") || strings.Contains(out, "was read") {
		t.Errorf("without the key:\n%s", out)
	}
	h.write("earshot.yaml", config+"plugins: {acme: {sandbox: {read: [modules]}}}\n")
	if out, _ := h.runIn(h.dir, "plugin", "list", "-c", "earshot.yaml"); !strings.Contains(out, "the module was read") {
		t.Errorf("with the key:\n%s", out)
	}
}
