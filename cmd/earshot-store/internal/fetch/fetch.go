// Package fetch puts the engine library of a platform into the cache.
//
// The archive is fetched from npm's registry: by npm where it is installed, because it knows the
// proxies and credentials of this machine, else by HTTP from the registry that npm's
// configuration names. It is checked against the integrity that engine.lock pins. A platform
// whose integrity is not recorded there is held to that of the registry, and the first archive
// that was accepted is pinned in the data directory: a later one has to be the same.
//
// Everything happens in a folder beside the final one and is renamed into place, so the cache
// holds a whole library or none. A lock file makes concurrent runs wait for the first; a run that
// finds the library touches neither the lock nor the network.
package fetch

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/release"
)

const (
	// marker is beside the library, with the integrity that was checked. A library without it, or with
	// another pin, is fetched again.
	marker = "integrity"
	// pinFile is in the data directory, with a line of engine.lock for a platform that has none.
	pinFile = "engine.pin"
)

// packer leaves the npm archive of rel in dir, after a check against the registry's integrity,
// and returns its path.
type packer func(ctx context.Context, rel release.Release, dir string) (string, error)

// Fetcher fetches a library.
type Fetcher struct {
	Release release.Release
	Dir     string    // of the library
	Data    string    // directory of the pin of a platform without one in engine.lock; empty: nothing is pinned
	Out     io.Writer // announces a fetch: its size and address

	pack packer // a test's
}

// Library returns the path of the library, and fetches it first when it is not in the cache.
func (f *Fetcher) Library(ctx context.Context) (string, error) {
	lib := filepath.Join(f.Dir, release.LibraryName)
	want, err := f.pin()
	if err != nil {
		return "", err
	}
	if f.cached(want) {
		return lib, nil
	}
	if f.pack == nil {
		if err := refuseMusl(os.Stat); err != nil {
			return "", err
		}
		f.pack = newPacker(f.Out, os.Getenv)
	}
	parent := filepath.Dir(f.Dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("engine: make cache: %w", err)
	}
	unlock, err := lock(f.Dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if f.cached(want) { // another process was faster
		return lib, nil
	}
	tmp, err := os.MkdirTemp(parent, ".fetch-")
	if err != nil {
		return "", fmt.Errorf("engine: make work folder: %w", err)
	}
	defer os.RemoveAll(tmp)

	archive, err := f.pack(ctx, f.Release, tmp)
	if err != nil {
		return "", err
	}
	got, err := integrity(archive)
	if err != nil {
		return "", err
	}
	if want != "" && got != want {
		return "", fmt.Errorf("engine: %s has integrity %s, pinned is %s: nothing was installed", f.Release.Spec(), got, want)
	}
	ready := filepath.Join(tmp, "ready")
	if err := os.Mkdir(ready, 0o755); err != nil {
		return "", fmt.Errorf("engine: make work folder: %w", err)
	}
	if err := unpack(archive, filepath.Join(ready, release.LibraryName)); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(ready, marker), []byte(got+"\n"), 0o644); err != nil {
		return "", fmt.Errorf("engine: write %s: %w", marker, err)
	}
	if want == "" {
		if err := f.setPin(got); err != nil {
			return "", err
		}
	}
	return lib, place(ready, f.Dir)
}

// pin returns the integrity that the archive has to have; empty when none is recorded.
func (f *Fetcher) pin() (string, error) {
	if f.Release.Pinned() || f.Data == "" {
		return strings.TrimPrefix(f.Release.Integrity, "unpinned"), nil
	}
	text, err := os.ReadFile(filepath.Join(f.Data, pinFile))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("engine: read pin: %w", err)
	}
	rel, err := release.Parse(string(text), f.Release.Platform)
	if err != nil {
		return "", fmt.Errorf("engine: %s: %w", filepath.Join(f.Data, pinFile), err)
	}
	if rel.Spec() != f.Release.Spec() { // of an earlier version
		return "", nil
	}
	return rel.Integrity, nil
}

func (f *Fetcher) setPin(integrity string) error {
	if f.Data == "" {
		return nil
	}
	if err := os.MkdirAll(f.Data, 0o700); err != nil {
		return fmt.Errorf("engine: make data folder: %w", err)
	}
	r := f.Release
	line := fmt.Sprintln(r.Platform, r.Package, r.Version, integrity)
	if err := os.WriteFile(filepath.Join(f.Data, pinFile), []byte(line), 0o600); err != nil {
		return fmt.Errorf("engine: write pin: %w", err)
	}
	fmt.Fprintf(f.Out, "%s: no release of Earshot has recorded its integrity yet: it is %s by the registry, and pinned from now on\n", r.Spec(), integrity)
	return nil
}

// cached reports whether the library is there, of that integrity, or of any when it is empty.
func (f *Fetcher) cached(integrity string) bool {
	got, err := os.ReadFile(filepath.Join(f.Dir, marker))
	if err != nil || integrity != "" && string(bytes.TrimSpace(got)) != integrity {
		return false
	}
	st, err := os.Stat(filepath.Join(f.Dir, release.LibraryName))
	return err == nil && st.Mode().IsRegular()
}

// place renames ready to dir. An earlier dir is moved out of the way first;
// it is removed only when it looks like one of ours, so that a wrong
// EARSHOT_ENGINE_DIR never costs anybody a folder.
func place(ready, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("engine: read %s: %w", dir, err)
	}
	for _, e := range entries {
		if e.Name() != marker && e.Name() != release.LibraryName {
			return fmt.Errorf("engine: %s holds %s, which is not an engine: name an empty folder in %s", dir, e.Name(), release.EnvDir)
		}
	}
	for _, e := range entries {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("engine: replace old library: %w", err)
		}
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("engine: replace old library: %w", err)
	}
	if err := os.Rename(ready, dir); err != nil {
		return fmt.Errorf("engine: move library into place: %w", err)
	}
	return nil
}

func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("engine: open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("engine: lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// integrity is the hash of a file as npm writes it.
func integrity(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("engine: open archive: %w", err)
	}
	defer f.Close()
	h := sha512.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("engine: read archive: %w", err)
	}
	return "sha512-" + base64.StdEncoding.EncodeToString(h.Sum(nil)), nil
}

// unpack writes the library, the only member we want, to dst.
func unpack(archive, dst string) error {
	f, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("engine: open archive: %w", err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("engine: read archive: %w", err)
	}
	tr := tar.NewReader(zr)
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("engine: the archive holds no %s", release.LibraryName)
		}
		if err != nil {
			return fmt.Errorf("engine: read archive: %w", err)
		}
		if h.Typeflag != tar.TypeReg || filepath.Base(h.Name) != release.LibraryName {
			continue
		}
		out, err := os.OpenFile(dst, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
		if err != nil {
			return fmt.Errorf("engine: create library: %w", err)
		}
		_, err = io.Copy(out, tr)
		if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
			return fmt.Errorf("engine: write library: %w", err)
		}
		return nil
	}
}

// refuseMusl stops before a download that could not be loaded.
func refuseMusl(stat func(string) (os.FileInfo, error)) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	for _, loader := range []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"} {
		if _, err := stat(loader); err == nil {
			return nil
		}
	}
	return errors.New("engine: the library needs glibc, and musl systems such as Alpine are not supported: name a ClickHouse server in exporters.clickhouse.dsn")
}
