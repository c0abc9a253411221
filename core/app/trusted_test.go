package app

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/config"
)

// planted is a plugin_dir with programs that leave a file when they run, and the configuration of it.
func planted(t *testing.T, names ...string) (c *config.Config, dir, ran string) {
	t.Helper()
	dir, ran = t.TempDir(), filepath.Join(t.TempDir(), "ran")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n: >"+ran+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c = config.Default()
	c.PluginDir = dir
	return c, dir, ran
}

// TestPluginDirOfOthers: nothing runs that another user could have put there, in `plugin list` and
// `validate` neither.
func TestPluginDirOfOthers(t *testing.T) {
	chown := func(path string) error {
		if os.Geteuid() != 0 {
			t.Skip("a file of another user takes root")
		}
		return os.Lchown(path, 4711, 4711)
	}
	for name, open := range map[string]func(dir, file string) error{
		"folder writable by all":       func(dir, _ string) error { return os.Chmod(dir, 0o777) },
		"sticky folder":                func(dir, _ string) error { return os.Chmod(dir, 0o777|os.ModeSticky) },
		"folder above writable by all": func(dir, _ string) error { return os.Chmod(filepath.Dir(dir), 0o777) },
		"file writable by all":         func(_, file string) error { return os.Chmod(file, 0o757) },
		"file of another user":         func(_, file string) error { return chown(file) },
		"folder of another user":       func(dir, _ string) error { return chown(dir) },
		"link of another user": func(_, file string) error {
			real := filepath.Join(filepath.Dir(filepath.Dir(file)), "real")
			if err := os.Rename(file, real); err != nil {
				return err
			}
			if err := os.Symlink(real, file); err != nil {
				return err
			}
			return chown(file)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, dir, ran := planted(t, "acme")
			if err := open(dir, filepath.Join(dir, "acme")); err != nil {
				t.Fatal(err)
			}
			c.Sources = []config.Source{{Name: "a", Type: "file", Format: "acme"}}
			d := Decoders{}
			if _, err := d.List(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			problems, err := d.Check(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if len(problems) == 0 || !strings.Contains(problems[len(problems)-1].Message, "a program that others can change is not started") {
				t.Errorf("problems: %v", problems)
			}
			if _, err := os.Stat(ran); err == nil {
				t.Error("the program ran")
			}
		})
	}
	c, _, ran := planted(t, "acme")
	if list, err := (Decoders{}).List(t.Context(), c); err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if _, err := os.Stat(ran); err != nil {
		t.Error("a program of ours did not run:", err)
	}
}

// TestBundledIsNotReplaced by a file of its name, unless the configuration allows it.
func TestBundledIsNotReplaced(t *testing.T) {
	c, dir, ran := planted(t, "legion")
	d := Decoders{Names: []string{"legion"}, Args: func(name string) []string { return []string{"decoder", name} }}
	s, err := d.launch(c, "legion", "", nil)
	if err != nil || len(s.Args) != 2 || strings.HasPrefix(s.Path, dir) {
		t.Fatalf("%+v %v", s, err)
	}
	if w := d.Warnings(c); len(w) != 1 || !strings.Contains(w[0], "plugins.legion.replace_bundled") {
		t.Errorf("warnings: %q", w)
	}
	if list := d.Shadowed(c); len(list) != 1 || list[0].Path != filepath.Join(dir, "legion") {
		t.Errorf("%+v", list)
	}
	p := config.DefaultPlugin()
	p.ReplaceBundled = true
	c.Plugins = map[string]config.Plugin{"legion": p}
	if s, err := d.launch(c, "legion", "", nil); err != nil || s.Path != filepath.Join(dir, "legion") {
		t.Fatalf("%+v %v", s, err)
	}
	if w := d.Warnings(c); len(w) != 0 {
		t.Errorf("warnings: %q", w)
	}
	if _, err := d.List(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(ran); err != nil {
		t.Error("the program that replaces did not run:", err)
	}
	c.PluginDir = t.TempDir()
	if _, err := d.launch(c, "legion", "", nil); err == nil || !strings.Contains(err.Error(), "replace_bundled") {
		t.Errorf("a replacement that is not there: %v", err)
	}
}

// TestSharedData: a data directory that others may read or change is named, also if it is another user's with mode 0700.
func TestSharedData(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are not the system's access lists")
	}
	dir := filepath.Join(t.TempDir(), "data")
	if text := SharedData(dir); text != "" {
		t.Errorf("before it is there: %s", text)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{0o700: "", 0o755: "is open to others", 0o777: "is writable by everybody"} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if text := SharedData(dir); (text == "") != (want == "") || !strings.Contains(text, want) {
			t.Errorf("%o: %q", mode, text)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root gives a directory away")
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if text := SharedData(dir); !strings.Contains(text, "belongs to user 65534") {
		t.Errorf("another user's: %q", text)
	}
}
