package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/release"
	"github.com/earshot-dev/earshot/core/sandbox"
)

// fenced marks the process that fence has become.
const fenced = "EARSHOT_STORE_FENCED"

// fence becomes this program again in a sandbox: its data folder, the folders of its socket and
// its ready file, the engine library and the machine's clock and counters; no network, no other program.
// A clickhouse executable needs both and is not fenced.
func fence(opt options) error {
	if os.Getenv(fenced) != "" {
		return os.Unsetenv(fenced)
	}
	if sandbox.Level() == 0 || release.Executable(opt.engine) {
		return nil
	}
	executable, err := os.Executable()
	if err != nil {
		return fmt.Errorf("fence: %w", err)
	}
	lib, err := release.Find(opt.engine, os.Getenv, executable)
	if err != nil {
		return err
	}
	rules := sandbox.Rules{
		Read:  []string{"/etc/localtime", "/etc/timezone", "/usr/share/zoneinfo", "/proc", "/sys", filepath.Dir(lib)},
		Write: []string{opt.path, filepath.Dir(opt.socket), "/dev/null", "/dev/urandom"},

		Connect: true, Processes: true,
	}
	if opt.readyFile != "" {
		rules.Write = append(rules.Write, filepath.Dir(opt.readyFile))
	}
	if resolved, err := filepath.EvalSymlinks(lib); err == nil { // its folder may be one of links
		rules.Read = append(rules.Read, resolved)
	}
	if err := os.MkdirAll(opt.path, 0o700); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	return sandbox.Exec(rules, executable, os.Args, append(os.Environ(), fenced+"=1"))
}
