package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A writer into a watched tree cannot have the sidecar read a file outside of it.
func TestLinksThatLeaveTheTree(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "shadow")
	if err := os.WriteFile(secret, []byte("root:$6$hash\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	prepare := func(t *testing.T) *env {
		e := newEnv(t, "logs/**/*.jsonl").poll()
		e.settings.MetadataFiles = []string{"*.meta.json"}
		e.write("logs/own.jsonl", text("own"))
		e.write("other/tenant.jsonl", text("tenant"))
		e.write("other/notes.json", "notes")
		e.must(os.Symlink(secret, e.path("logs/secret.jsonl")))
		e.must(os.Symlink("../other/notes.json", e.path("logs/secret.meta.json")))
		e.must(os.Symlink("../other", e.path("logs/dir")))
		e.must(os.Symlink(secret, e.path("logs/README"))) // no pattern asks for it
		return e
	}
	t.Run("refused and reported once", func(t *testing.T) {
		e := prepare(t).start()
		e.want("own")
		e.wantTrouble(ReasonLink, ReasonLink, ReasonLink)
		e.add("logs/own.jsonl", text("more"))
		e.want("more", "own")
		e.wantTrouble(ReasonLink, ReasonLink, ReasonLink)
	})
	t.Run("allowed", func(t *testing.T) {
		e := prepare(t)
		e.settings.FollowSymlinks = true
		e.start().want("own", "tenant", "root:$6$hash", "notes")
	})
	t.Run("links that stay", func(t *testing.T) {
		e := newEnv(t, "logs/**/*.jsonl")
		e.write("logs/data/x", text("x"))
		e.write("logs/data/y", text("y"))
		e.must(os.Symlink("data/x", e.path("logs/relative.jsonl")))
		e.must(os.Symlink(e.path("logs/data/y"), e.path("logs/absolute.jsonl")))
		e.start().want("x", "y")
		e.wantTrouble()
	})
	t.Run("the root may be a link", func(t *testing.T) {
		e := newEnv(t, "link/*.jsonl")
		e.write("logs/x.jsonl", text("x"))
		e.must(os.Symlink(e.path("logs"), e.path("link")))
		e.start().want("x")
	})
	t.Run("listed as the source reads them", func(t *testing.T) {
		e := prepare(t)
		files, unread, err := (&Config{Paths: e.settings.Paths}).List(context.Background(), nil)
		if err != nil || len(files) != 1 || len(unread) != 2 {
			t.Errorf("files %q, unread %v, %v", files, unread, err)
		}
	})
}

// A directory that becomes a link between the look and the opening changes nothing.
func TestLinkBetweenLookAndOpen(t *testing.T) {
	e := newEnv(t, "logs/**/*.jsonl").poll()
	e.write("other/x.jsonl", text("tenant"))
	e.write("logs/a/x.jsonl", text("own"))
	e.prepare = func(s *Source) {
		s.readDir = func(dir string) ([]os.DirEntry, error) {
			if dir == e.path("logs/a") { // seen as a directory before
				e.must(os.RemoveAll(dir))
				e.must(os.Symlink(e.path("other"), dir))
				defer func() { e.must(os.Remove(dir)); e.must(os.Symlink(e.path("other"), dir)) }()
			}
			return os.ReadDir(dir)
		}
	}
	e.start().wantTrouble(ReasonLink)
	e.idle()
	if n := e.sink.count(); n != 0 {
		t.Errorf("%d lines of another tree", n)
	}
	src, err := New(e.settings)
	e.must(err)
	if _, err := src.trees.open(e.path("logs/a/x.jsonl")); !errors.As(err, new(refusal)) {
		t.Errorf("open: %v", err)
	}
}

func TestOwners(t *testing.T) {
	e := newEnv(t, "*.jsonl")
	e.write("mine.jsonl", text("mine"))
	e.settings.Owners = []string{strconv.Itoa(os.Getuid())}
	e.start().want("mine")

	e = newEnv(t, "*.jsonl")
	e.write("mine.jsonl", text("mine"))
	e.settings.Owners = []string{strconv.Itoa(os.Getuid() + 1)}
	e.start().wantTrouble(ReasonOwner)
	e.idle()
	if n := e.sink.count(); n != 0 {
		t.Errorf("%d lines of another user's file", n)
	}

	e.settings.Owners = []string{"no-such-user"}
	if _, err := New(e.settings); err == nil || !strings.Contains(err.Error(), "no-such-user") {
		t.Errorf("an unknown user: %v", err)
	}
}
