// Package release knows which build of the engine library belongs to which
// platform, and where the library lies on this machine.
//
// The pins are data (engine.lock). A library is code that runs with our rights: a platform whose
// integrity is not recorded is pinned on this machine at the first fetch (package fetch).
// The libraries are glibc builds; musl systems (Alpine) are not supported.
package release

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// EnvDir names the environment variable that replaces the cache directory. It
// points at the folder that holds the library itself.
const EnvDir = "EARSHOT_ENGINE_DIR"

// LibraryName is the file inside the npm package and inside the cache.
const LibraryName = "libchdb.so"

// ErrMissing is the error of Find when the library is nowhere. Its text is the
// whole message for the user: one sentence with the command to type.
var ErrMissing = errors.New("the ClickHouse engine library (" + LibraryName + ") is not on this machine: type `earshot store fetch` to fetch it, about 180 MB, or name a ClickHouse server in exporters.clickhouse.dsn")

//go:embed engine.lock
var lock string

// Release is one line of engine.lock.
type Release struct {
	Platform  string // GOOS/GOARCH
	Package   string // npm package name
	Version   string // npm version
	Integrity string // "sha512-<base64>", or "unpinned"
}

// Spec is the release in npm's notation: name@version.
func (r Release) Spec() string { return r.Package + "@" + r.Version }

// Pinned reports whether an integrity is on record.
func (r Release) Pinned() bool { return strings.HasPrefix(r.Integrity, "sha512-") }

// Current is the release for the platform this program was built for.
func Current() (Release, error) {
	return Parse(lock, runtime.GOOS+"/"+runtime.GOARCH)
}

// Parse returns the line of a platform in a file like engine.lock.
func Parse(lock, platform string) (Release, error) {
	for n, line := range strings.Split(lock, "\n") {
		line, _, _ = strings.Cut(line, "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) != 4 {
			return Release{}, fmt.Errorf("engine.lock:%d: want 4 fields, have %d", n+1, len(f))
		}
		if f[0] == platform {
			return Release{Platform: f[0], Package: f[1], Version: f[2], Integrity: f[3]}, nil
		}
	}
	return Release{}, fmt.Errorf("engine: there is no engine library for %s", platform)
}

// Dir is where the library of r is cached:
// ${EARSHOT_ENGINE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/earshot/engine/<version>}.
func (r Release) Dir(env func(string) string) (string, error) {
	if dir := env(EnvDir); dir != "" {
		return filepath.Abs(dir)
	}
	cache := env("XDG_CACHE_HOME")
	if cache == "" {
		home := env("HOME")
		if home == "" {
			return "", fmt.Errorf("engine: neither %s nor XDG_CACHE_HOME nor HOME is set", EnvDir)
		}
		cache = filepath.Join(home, ".cache")
	}
	return filepath.Join(cache, "earshot", "engine", r.Version), nil
}

// Executable reports whether path, a value of --engine, is a clickhouse executable and no library.
func Executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0 && !strings.Contains(filepath.Base(path), ".so") && filepath.Ext(path) != ".dylib"
}

// Find returns the path of the library: in lib, a file or a folder, unless that is empty;
// else in EARSHOT_ENGINE_DIR, in the cache, or in the folder of the executable. The error
// is ErrMissing when there is none.
func Find(lib string, env func(string) string, executable string) (string, error) {
	if lib != "" {
		if path, ok := libraryIn(lib); ok {
			return path, nil
		}
		return "", fmt.Errorf("--engine %s: there is neither %s nor a clickhouse executable here: leave it out, or type `earshot store fetch`", lib, LibraryName)
	}
	var dirs []string
	r, err := Current()
	if err != nil {
		return "", err
	}
	if dir, err := r.Dir(env); err == nil {
		dirs = append(dirs, dir)
	}
	if env(EnvDir) != "" {
		cacheOnly := func(k string) string {
			if k == EnvDir {
				return ""
			}
			return env(k)
		}
		if dir, err := r.Dir(cacheOnly); err == nil {
			dirs = append(dirs, dir)
		}
	}
	if executable != "" {
		dirs = append(dirs, filepath.Dir(executable))
	}
	for _, dir := range dirs {
		if path, ok := libraryIn(dir); ok {
			return path, nil
		}
	}
	return "", ErrMissing
}

func libraryIn(path string) (string, bool) {
	st, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	if !st.IsDir() {
		return path, true
	}
	path = filepath.Join(path, LibraryName)
	st, err = os.Stat(path)
	return path, err == nil && !st.IsDir()
}
