package release

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLockNamesEveryPlatformAndPinsLinuxAMD64(t *testing.T) {
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"} {
		r, err := Parse(lock, platform)
		if err != nil {
			t.Fatal(err)
		}
		if r.Integrity != "unpinned" && !r.Pinned() {
			t.Errorf("%s: integrity %q is neither a sha512 nor unpinned", platform, r.Integrity)
		}
	}
	if r, _ := Parse(lock, "linux/amd64"); !r.Pinned() {
		t.Error("linux/amd64 is not pinned")
	}
	if _, err := Parse(lock, "plan9/386"); err == nil || !strings.Contains(err.Error(), "plan9/386") {
		t.Errorf("unknown platform: %v", err)
	}
	if _, err := Parse("linux/amd64 too few", "linux/amd64"); err == nil {
		t.Error("a short line was accepted")
	}
}

func TestDir(t *testing.T) {
	r := Release{Version: "1.2"}
	cases := []struct {
		env  map[string]string
		want string
	}{
		{map[string]string{EnvDir: "/e", "XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/e"},
		{map[string]string{"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/earshot/engine/1.2"},
		{map[string]string{"HOME": "/h"}, "/h/.cache/earshot/engine/1.2"},
	}
	for _, c := range cases {
		got, err := r.Dir(func(k string) string { return c.env[k] })
		if err != nil || got != c.want {
			t.Errorf("%v: %q, %v; want %q", c.env, got, err, c.want)
		}
	}
	if _, err := r.Dir(func(string) string { return "" }); err == nil {
		t.Error("no environment at all gave a folder")
	}
}

func TestFindOrder(t *testing.T) {
	r, err := Current()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	put := func(parts ...string) string {
		path := filepath.Join(append([]string{root}, parts...)...)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	env := map[string]string{"HOME": root, EnvDir: filepath.Join(root, "env")}
	look := func(lib string) (string, error) {
		return Find(lib, func(k string) string { return env[k] }, filepath.Join(root, "bin", "earshot-store"))
	}

	if _, err := look(""); !errors.Is(err, ErrMissing) {
		t.Fatalf("nothing there: %v", err)
	}
	steps := []string{
		put("bin", LibraryName),
		put(".cache", "earshot", "engine", r.Version, LibraryName),
		put("env", LibraryName),
	}
	// Looked up from the weakest place to the strongest, so each new file must win.
	for i := range steps {
		for _, later := range steps[i+1:] {
			os.Rename(later, later+".off")
		}
		if got, err := look(""); err != nil || got != steps[i] {
			t.Errorf("step %d: %q, %v; want %q", i, got, err, steps[i])
		}
		for _, later := range steps[i+1:] {
			os.Rename(later+".off", later)
		}
	}
	flag := put("flag", "my.so")
	if got, err := look(flag); err != nil || got != flag {
		t.Errorf("--engine file: %q, %v", got, err)
	}
	if got, err := look(filepath.Join(root, "env")); err != nil || got != steps[2] {
		t.Errorf("--engine folder: %q, %v", got, err)
	}
	if _, err := look(filepath.Join(root, "nowhere")); err == nil || !strings.Contains(err.Error(), "earshot store fetch") {
		t.Errorf("--engine to nowhere must fail although the cache has one: %v", err)
	}
}

func TestMissingIsOneSentence(t *testing.T) {
	text := ErrMissing.Error()
	if strings.Contains(text, "\n") || !strings.Contains(text, "`earshot store fetch`") || strings.Contains(text, ". ") {
		t.Errorf("not one sentence with the command: %q", text)
	}
}
