// Command release makes the files of a release from the tree in a directory: archives,
// packages (deb, rpm, apk), a Homebrew formula, the build context of the OCI images, the SBOM and
// the checksums of them all.
//
//	release -C DIR -version v1.2.3 -out dist [-only linux/amd64]
//
// content (content.go) is the one description of an installation; archives and packages are both
// made from it. The same commit has the same bytes: binaries are built without paths and C,
// and every time is SOURCE_DATE_EPOCH, or else that of the commit. The engine of the embedded store is in
// none of them: earshot fetches it at its first start.
//
// nfpm makes the packages, because it writes three formats without the tools of three distributions; the
// rest of goreleaser's work is building and packing, which the go command and archive/tar do.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// platforms are those of a release. Windows has no embedded store.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// release is one of a commit.
type release struct {
	version string    // without v
	tag     string    // as git has it
	time    time.Time // of everything in it
	out     string
	// built is a folder that has the binaries of this machine's platform already; empty: they are built. A test uses it.
	built string
}

func main() {
	version := flag.String("version", "", "of the release: a tag, or the output of git describe")
	out := flag.String("out", "dist", "folder of the result; emptied first")
	only := flag.String("only", "", "one platform, GOOS/GOARCH")
	root := flag.String("C", ".", "`DIR` of the tree")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := os.Chdir(*root)
	if err == nil {
		err = run(ctx, *version, *out, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, version, out, only string) error {
	at, err := epoch(ctx)
	if err != nil {
		return err
	}
	wanted := platforms
	if only != "" {
		wanted = slices.DeleteFunc(slices.Clone(platforms), func(p platform) bool { return p.String() != only })
		if len(wanted) == 0 {
			return fmt.Errorf("%s is no platform of a release", only)
		}
	}
	r := release{version: semantic(version), tag: version, time: at, out: out}
	if err := r.empty(); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "earshot-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	shared, err := r.shared(ctx, work)
	if err != nil {
		return err
	}
	images := make(map[string][]file)
	for _, p := range wanted {
		binaries, err := r.build(ctx, p, work)
		if err != nil {
			return err
		}
		if err := r.archive(p, append(slices.Clone(binaries), shared...)); err != nil {
			return err
		}
		if p.os != "linux" {
			continue
		}
		images[p.arch] = binaries
		if err := r.packages(p, append(slices.Clone(binaries), shared...), "deb", "rpm", "apk"); err != nil {
			return err
		}
	}
	if err := r.images(images); err != nil {
		return err
	}
	if err := r.sbom(ctx); err != nil {
		return err
	}
	if err := r.formula(); err != nil {
		return err
	}
	return r.checksums()
}

// semantic makes a version of the output of git describe: that of a tag, or, for a commit without one, 0.0.0 with
// the commit's hash.
func semantic(version string) string {
	v := strings.TrimPrefix(version, "v")
	if regexp.MustCompile(`^\d+\.\d+\.\d+`).MatchString(v) {
		return v
	}
	return "0.0.0-git." + strings.ReplaceAll(v, "-", ".")
}

// epoch is the time of everything in the release.
func epoch(ctx context.Context) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("the time of the commit: %w; set SOURCE_DATE_EPOCH", err)
		}
		text = strings.TrimSpace(string(out))
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(n, 0).UTC(), nil
}

// marker makes a folder one that a release may empty.
const marker = "checksums.txt"

// empty makes the folder of the result, and removes the files of an earlier release.
func (r release) empty() error {
	entries, err := os.ReadDir(r.out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(r.out, marker)); err != nil {
			return fmt.Errorf("%s is not empty and not of an earlier release", r.out)
		}
		if err := os.RemoveAll(r.out); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, marker), nil, 0o644) // so that one that breaks off can be repeated
}

// command runs a program of the tree, and returns its output.
func command(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
