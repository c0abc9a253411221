package checkpoint

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestCompact: a forgotten record is in no page of the file any more, the rest is there, and the
// directory is locked all the time.
func TestCompact(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	d := Delta{Streams: []Stream{{Source: "a", Key: "1", Session: "confidential"}, {Source: "a", Key: "2", Session: "stays"}}}
	d.Groups = []Group{{Key: "stays", State: []byte("state")}, {Key: "confidential", State: []byte("x")}}
	if err := s.Commit(d); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(Delta{Streams: []Stream{{Source: "a", Key: "1"}}, Groups: []Group{{Key: "confidential"}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Compact(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "checkpoint.db")); err != nil || bytes.Contains(b, []byte("confidential")) || !bytes.Contains(b, []byte("stays")) {
		t.Errorf("the file has it: %v", err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("opened a second time: %v", err)
	}
	if err := s.Commit(Delta{Streams: []Stream{{Source: "a", Key: "3"}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.Streams("")
	if g, gerr := s.Group("stays"); len(list) != 3 || err != nil || string(g) != "state" || gerr != nil {
		t.Errorf("%d streams, %v, %q, %v", len(list), err, g, gerr)
	}
}

// TestCompactFails: whichever step fails, the store goes on as it was, and the next attempt succeeds.
func TestCompactFails(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	commit(t, s, Delta{Streams: []Stream{{Source: "a", Key: "1"}}})
	path := filepath.Join(dir, "checkpoint.db")
	attempt := func(fails bool) {
		t.Helper()
		if err := s.Compact(); (err != nil) != fails {
			t.Fatalf("%v", err)
		}
		if got := keys(t, s, ""); len(got) != 1 {
			t.Errorf("%v", got)
		}
		commit(t, s, Delta{Streams: []Stream{{Source: "a", Key: "1"}}})
	}
	left := path + ".tmp"
	if err := os.MkdirAll(filepath.Join(left, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	attempt(true)
	if err := os.RemoveAll(left); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(path, path+".aside"), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	attempt(true)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an unfinished copy is left: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.Rename(path+".aside", path)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, []byte("of a crash"), 0o600); err != nil {
		t.Fatal(err)
	}
	attempt(false)
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is left: %v", err)
	}
}

// TestCompactKeepsTheLock: a process that waits for the file while another one replaces it does not have it then.
func TestCompactKeepsTheLock(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		opened := make(chan error, 1)
		go func() {
			other, err := Open(dir)
			if err == nil {
				err = other.Close()
			}
			opened <- err
		}()
		time.Sleep(60 * time.Millisecond) // it waits for the file of before
		if err := s.Compact(); err != nil {
			t.Fatal(err)
		}
		if err := <-opened; !errors.Is(err, ErrLocked) {
			t.Errorf("another process has the directory: %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
