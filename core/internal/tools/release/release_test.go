package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// conversation is one of Claude Code.
const conversation = `{"type":"user","uuid":"u1","sessionId":"00000001-0000-4000-8000-000000000001","timestamp":"2026-11-02T10:00:00.000Z","cwd":"/work","version":"2.1.0","message":{"role":"user","content":"Grease the winch."}}
{"type":"assistant","uuid":"u2","parentUuid":"u1","sessionId":"00000001-0000-4000-8000-000000000001","timestamp":"2026-11-02T10:00:02.000Z","cwd":"/work","version":"2.1.0","message":{"id":"m1","role":"assistant","model":"claude-opus-4-5","content":[{"type":"text","text":"The winch is greased."}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":5}}}
`

// made makes the release of this machine, for Linux.
func made(t *testing.T, out string) map[string]string {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "1790000000")
	if err := run(t.Context(), "v0.9.0", out, "linux/"+runtime.GOARCH); err != nil {
		t.Fatal(err)
	}
	sums := make(map[string]string)
	text, err := os.ReadFile(filepath.Join(out, marker))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	return sums
}

// TestRelease makes a release twice, and the files are the same, byte by byte. Then it installs the deb.
func TestRelease(t *testing.T) {
	t.Chdir("../../../..")
	dir := t.TempDir()
	first, second := made(t, filepath.Join(dir, "first")), made(t, filepath.Join(dir, "second"))
	base := "earshot_0.9.0_linux_" + runtime.GOARCH
	for _, name := range []string{base + ".tar.gz", base + ".deb", base + ".rpm", base + ".apk", "earshot_0.9.0_oci.tar.gz", "earshot_0.9.0.cdx.json", "earshot.rb"} {
		if first[name] == "" || first[name] != second[name] {
			t.Errorf("%s: %s and then %s", name, first[name], second[name])
		}
	}
	out := filepath.Join(dir, "first")
	formula, err := os.ReadFile(filepath.Join(out, "earshot.rb"))
	if err != nil || !bytes.Contains(formula, []byte(first[base+".tar.gz"])) {
		t.Errorf("the formula has not the archive's sum: %v", err)
	}
	list := members(t, filepath.Join(out, base+".tar.gz"))
	for _, want := range []string{"bin/earshot", "bin/earshot-store", "README.md", "LICENSE", "NOTICE", "share/man/man1/earshot-up.1.gz", "share/bash-completion/completions/earshot"} {
		if !slices.Contains(list, base+"/"+want) {
			t.Errorf("the archive has no %s: %q", want, list)
		}
	}
	if list := members(t, filepath.Join(out, "earshot_0.9.0_oci.tar.gz")); !slices.Contains(list, "Dockerfile") || !slices.Contains(list, "linux/"+runtime.GOARCH+"/earshot-store") {
		t.Errorf("the images' context has %q", list)
	}
	install(t, filepath.Join(out, base+".deb"), "v0.9.0")
}

// TestInstall installs a deb of the binaries in bin, which make build leaves there. It is the part of TestRelease that make
// test can afford: nothing is compiled with a release's flags.
func TestInstall(t *testing.T) {
	t.Chdir("../../../..")
	if _, err := os.Stat("bin/earshot"); err != nil || runtime.GOOS != "linux" {
		t.Skip("no bin/earshot for Linux: type make build")
	}
	version, err := exec.Command("bin/earshot", "version").Output()
	must(t, err)
	dir, p := t.TempDir(), platform{"linux", runtime.GOARCH}
	r := release{version: "0.9.0", tag: "v0.9.0", time: time.Unix(1790000000, 0), out: dir, built: "bin"}
	shared, err := r.shared(t.Context(), t.TempDir())
	must(t, err)
	binaries, err := r.build(t.Context(), p, "")
	must(t, err)
	must(t, r.packages(p, append(binaries, shared...), "deb"))
	install(t, filepath.Join(dir, r.name(p)+".deb"), strings.Fields(string(version))[1])
}

func members(t *testing.T, path string) []string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for tr := tar.NewReader(zr); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

// install installs a deb in an empty root with the machine's dpkg, which runs the scripts outside of it. It starts the sidecar that
// is there on a conversation, and removes the package: the configuration stays until it is purged.
func install(t *testing.T, deb, version string) {
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Log("no dpkg on this machine: the deb is not installed")
		return
	}
	root, home := t.TempDir(), t.TempDir()
	for _, name := range []string{"info", "updates", "triggers"} {
		must(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg", name), 0o755))
	}
	must(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644))
	dpkg := func(args ...string) {
		t.Helper()
		cmd := exec.Command("dpkg", append([]string{"--root=" + root, "--force-not-root", "--force-script-chrootless", "--force-architecture"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("dpkg %v: %v\n%s", args, err, out)
		}
	}
	here := func(path string) bool {
		_, err := os.Lstat(filepath.Join(root, path))
		return err == nil
	}
	dpkg("-i", deb)

	unit, err := os.ReadFile(filepath.Join(root, serviceFile))
	must(t, err)
	_, command, _ := strings.Cut(string(unit), "ExecStart=")
	argv := strings.Fields(command)
	if !here(argv[0]) || argv[3] != "/"+sampleFile || !here(sampleFile) {
		t.Errorf("the service starts %q, which is not installed", argv[:4])
	}
	cache, err := os.UserCacheDir() // has the engine
	must(t, err)
	config := filepath.Join(home, "earshot.yaml")
	earshot := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(filepath.Join(root, argv[0]), args...)
		cmd.Dir = home
		cmd.Env = []string{"HOME=" + home, "XDG_CACHE_HOME=" + cache}
		cmd.WaitDelay = time.Minute
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("earshot %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := earshot("version"); !strings.Contains(out, "earshot "+version+" ") || !strings.Contains(out, "engine @chdb/") {
		t.Errorf("version prints %q", out)
	}
	sampled, err := os.ReadFile(filepath.Join(root, sampleFile))
	must(t, err)
	must(t, os.WriteFile(config, bytes.ReplaceAll(sampled, []byte("/var/lib/earshot"), []byte(filepath.Join(home, "sample"))), 0o600))
	earshot("validate", "-c", config)

	must(t, os.WriteFile(filepath.Join(home, "c.jsonl"), []byte(conversation), 0o600))
	must(t, os.WriteFile(config, []byte("data_dir: data\ntelemetry: {listen: \"\"}\nsources:\n  - {name: claude, type: file, format: claude-code, paths: [\"*.jsonl\"]}\n"), 0o600))
	earshot("run", "-c", config, "--until-idle", "300ms")
	if out := earshot("sessions", "-c", config); !strings.Contains(out, "Grease the winch.") {
		t.Errorf("sessions prints %q", out)
	}

	dpkg("-r", "earshot")
	if here("usr/bin/earshot") || !here(sampleFile) {
		t.Error("the removed package left its program, or took the configuration")
	}
	dpkg("-P", "earshot")
	if here(sampleFile) {
		t.Error("the purged package left its configuration")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSemantic(t *testing.T) {
	for text, want := range map[string]string{"v1.2.3": "1.2.3", "v1.2.3-4-gabcdef0": "1.2.3-4-gabcdef0", "a5fbecd4": "0.0.0-git.a5fbecd4", "a5fbecd4-dirty": "0.0.0-git.a5fbecd4.dirty"} {
		if got := semantic(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
