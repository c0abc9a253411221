package fetch

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/release"
)

// tarball writes an npm archive with the members and returns its path and integrity.
func tarball(t *testing.T, members map[string]string) (path, integrity string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "p.tgz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	zw := gzip.NewWriter(f)
	tw := tar.NewWriter(zw)
	for name, body := range members {
		if err := tw.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(body))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha512.Sum512(raw)
	return path, "sha512-" + base64.StdEncoding.EncodeToString(sum[:])
}

// packing hands out a copy of archive and counts how often it was asked.
func packing(archive string, calls *atomic.Int32) packer {
	return func(_ context.Context, _ release.Release, dir string) (string, error) {
		calls.Add(1)
		raw, err := os.ReadFile(archive)
		if err != nil {
			return "", err
		}
		dst := filepath.Join(dir, "p.tgz")
		return dst, os.WriteFile(dst, raw, 0o644)
	}
}

func library(t *testing.T, pack packer, rel release.Release, dir string) (string, error) {
	t.Helper()
	return (&Fetcher{Release: rel, Dir: dir, Out: io.Discard, pack: pack}).Library(t.Context())
}

func offline(context.Context, release.Release, string) (string, error) {
	return "", errors.New("offline")
}

func TestFetchOnceThenOffline(t *testing.T) {
	archive, integrity := tarball(t, map[string]string{"package/index.js": "x", "package/libchdb.so": "ELF"})
	rel := release.Release{Package: "@x/y", Version: "1", Integrity: integrity}
	dir := filepath.Join(t.TempDir(), "engine", "1")
	var calls atomic.Int32

	path, err := library(t, packing(archive, &calls), rel, dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "ELF" {
		t.Errorf("library holds %q", got)
	}
	if _, err := library(t, offline, rel, dir); err != nil {
		t.Errorf("the second run needed the network: %v", err)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".fetch-*"))
	if len(left) != 0 {
		t.Errorf("work folders left behind: %v", left)
	}

	rel.Integrity = "sha512-another"
	if _, err := library(t, offline, rel, dir); err == nil {
		t.Error("a library with another pin counted as cached")
	}
}

func TestFetchRefusesAWrongArchive(t *testing.T) {
	archive, integrity := tarball(t, map[string]string{"package/libchdb.so": "ELF"})
	empty, emptyIntegrity := tarball(t, map[string]string{"package/readme": "no library"})
	cases := []struct {
		name, archive, integrity, want string
	}{
		{"tampered", archive, emptyIntegrity, "nothing was installed"},
		{"without library", empty, emptyIntegrity, "holds no libchdb.so"},
		{"not an archive", "fetch_test.go", integrity, "nothing was installed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "1")
			rel := release.Release{Package: "@x/y", Version: "1", Integrity: c.integrity}
			_, err := library(t, packing(c.archive, new(atomic.Int32)), rel, dir)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("something was installed: %v", err)
			}
		})
	}
}

func TestFetchConcurrently(t *testing.T) {
	archive, integrity := tarball(t, map[string]string{"package/libchdb.so": "ELF"})
	rel := release.Release{Package: "@x/y", Version: "1", Integrity: integrity}
	dir := filepath.Join(t.TempDir(), "1")
	var calls atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := library(t, packing(archive, &calls), rel, dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if calls.Load() != 1 {
		t.Errorf("fetched %d times", calls.Load())
	}
}

func TestFetchKeepsAStrangersFolder(t *testing.T) {
	archive, integrity := tarball(t, map[string]string{"package/libchdb.so": "ELF"})
	dir := t.TempDir()
	precious := filepath.Join(dir, "thesis.txt")
	if err := os.WriteFile(precious, []byte("years"), 0o644); err != nil {
		t.Fatal(err)
	}
	rel := release.Release{Package: "@x/y", Version: "1", Integrity: integrity}
	if _, err := library(t, packing(archive, new(atomic.Int32)), rel, dir); err == nil {
		t.Error("a folder with other files was taken over")
	}
	if _, err := os.Stat(precious); err != nil {
		t.Errorf("the file is gone: %v", err)
	}
}

func TestRefuseMusl(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // other systems have one C library
	}
	none := func(string) (os.FileInfo, error) { return nil, os.ErrNotExist }
	all := func(string) (os.FileInfo, error) { return nil, nil }
	if err := refuseMusl(all); err != nil {
		t.Errorf("glibc refused: %v", err)
	}
	if err := refuseMusl(none); err == nil || !strings.Contains(err.Error(), "musl") {
		t.Errorf("no glibc loader: %v", err)
	}
}
