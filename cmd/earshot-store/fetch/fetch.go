package main

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
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/release"
)

// marker is written beside the library, with the integrity that was checked. A
// library without it, or with another pin, is fetched again.
const marker = "integrity"

// packer leaves the npm archive of rel in dir and returns its path.
type packer func(ctx context.Context, rel release.Release, dir string) (string, error)

// fetch returns the path of the library in dir, and puts it there first when it
// is not there yet.
func fetch(ctx context.Context, pack packer, rel release.Release, dir string) (string, error) {
	lib := filepath.Join(dir, release.LibraryName)
	if cached(rel, dir) {
		return lib, nil
	}
	if !rel.Pinned() {
		return "", fmt.Errorf("engine: %s has no pinned integrity for %s: add the output of `npm view %s dist.integrity` to engine.lock",
			rel.Spec(), rel.Platform, rel.Spec())
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("engine: make cache: %w", err)
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if cached(rel, dir) { // someone else was faster
		return lib, nil
	}
	tmp, err := os.MkdirTemp(parent, ".fetch-")
	if err != nil {
		return "", fmt.Errorf("engine: make work folder: %w", err)
	}
	defer os.RemoveAll(tmp)

	archive, err := pack(ctx, rel, tmp)
	if err != nil {
		return "", err
	}
	if err := verify(archive, rel); err != nil {
		return "", err
	}
	ready := filepath.Join(tmp, "ready")
	if err := os.Mkdir(ready, 0o755); err != nil {
		return "", fmt.Errorf("engine: make work folder: %w", err)
	}
	if err := unpack(archive, filepath.Join(ready, release.LibraryName)); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(ready, marker), []byte(rel.Integrity+"\n"), 0o644); err != nil {
		return "", fmt.Errorf("engine: write %s: %w", marker, err)
	}
	return lib, place(ready, dir)
}

func cached(rel release.Release, dir string) bool {
	got, err := os.ReadFile(filepath.Join(dir, marker))
	if err != nil || string(bytes.TrimSpace(got)) != rel.Integrity {
		return false
	}
	st, err := os.Stat(filepath.Join(dir, release.LibraryName))
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

func verify(archive string, rel release.Release) error {
	f, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("engine: open archive: %w", err)
	}
	defer f.Close()
	h := sha512.New()
	if _, err := io.Copy(h, f); err != nil {
		return fmt.Errorf("engine: read archive: %w", err)
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(h.Sum(nil)); got != rel.Integrity {
		return fmt.Errorf("engine: %s has integrity %s, pinned is %s: nothing was installed", rel.Spec(), got, rel.Integrity)
	}
	return nil
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

func npmPack(ctx context.Context, rel release.Release, dir string) (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("engine: npm is needed to fetch %s: install Node.js", rel.Spec())
	}
	fmt.Fprintf(os.Stderr, "fetching %s (about 180 MB, once)\n", rel.Spec())
	cmd := exec.CommandContext(ctx, npm, "pack", rel.Spec(), "--silent", "--pack-destination", dir)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("engine: npm pack %s: %w\n%s", rel.Spec(), err, bytes.TrimSpace(stderr.Bytes()))
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("engine: npm pack %s left %d archives", rel.Spec(), len(found))
	}
	return found[0], nil
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
	return errors.New("engine: the library needs glibc, and musl systems such as Alpine are not supported")
}
