package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// file is one of an installation.
type file struct {
	path   string // in a package below /; in an archive that of flat
	source string // on this machine
	mode   fs.FileMode
	system bool // only for a package: it is part of a system with systemd
	config bool // which its user may change
}

const (
	bin         = "usr/bin/"
	share       = "usr/share/"
	doc         = share + "doc/earshot/"
	sampleFile  = "etc/earshot/earshot.yaml"
	serviceFile = "usr/lib/systemd/system/earshot.service"
)

// sample is the configuration of a service that was just installed.
const sample = `# The configuration of earshot.service. Every key with its default:
# /usr/share/doc/earshot/config.example.yaml; what this machine has: earshot init.
data_dir: /var/lib/earshot
sources:
  - {name: otel, type: otlp}   # agents that export OpenTelemetry, to 127.0.0.1:4317 and 4318
`

// flat is the path in an archive: bin, share, and the texts at its top.
func (f file) flat() string {
	if name, ok := strings.CutPrefix(f.path, doc); ok {
		return name
	}
	return strings.TrimPrefix(f.path, "usr/")
}

// host makes an earshot that runs here.
func (r release) host(ctx context.Context, work string) (string, error) {
	if r.built != "" {
		return filepath.Abs(filepath.Join(r.built, "earshot"))
	}
	path := filepath.Join(work, "earshot")
	_, err := command(ctx, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags", r.flags(), "-o", path, "./cmd/earshot")
	return path, err
}

// shared are the files that do not depend on a platform.
func (r release) shared(ctx context.Context, work string) ([]file, error) {
	host, err := r.host(ctx, work)
	if err != nil {
		return nil, err
	}
	list := []file{
		{path: doc + "LICENSE", source: "LICENSE", mode: 0o644}, {path: doc + "NOTICE", source: "NOTICE", mode: 0o644},
		{path: doc + "README.md", source: "README.md", mode: 0o644}, {path: doc + "CHANGELOG.md", source: "CHANGELOG.md", mode: 0o644},
		{path: doc + "config.example.yaml", source: "config.example.yaml", mode: 0o644},
	}
	add := func(f file, text []byte) error {
		f.source, f.mode = filepath.Join(work, "shared", f.path), 0o644
		if err := os.MkdirAll(filepath.Dir(f.source), 0o755); err != nil {
			return err
		}
		list = append(list, f)
		return os.WriteFile(f.source, text, 0o644)
	}
	for shell, path := range map[string]string{
		"bash": share + "bash-completion/completions/earshot", "zsh": share + "zsh/site-functions/_earshot",
		"fish": share + "fish/vendor_completions.d/earshot.fish",
	} {
		text, err := command(ctx, nil, host, "completion", shell)
		if err != nil {
			return nil, err
		}
		if err := add(file{path: path}, text); err != nil {
			return nil, err
		}
	}
	man := filepath.Join(work, "man")
	if _, err := command(ctx, []string{"SOURCE_DATE_EPOCH=" + strconv.FormatInt(r.time.Unix(), 10)}, host, "man", man); err != nil {
		return nil, err
	}
	pages, err := filepath.Glob(filepath.Join(man, "*.1"))
	if err != nil || len(pages) == 0 {
		return nil, fmt.Errorf("no man pages: %w", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		var packed bytes.Buffer
		zw, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if _, err := zw.Write(text); err != nil {
			return nil, err
		}
		if err := zw.Close(); err != nil {
			return nil, err
		}
		if err := add(file{path: share + "man/man1/" + filepath.Base(page) + ".gz"}, packed.Bytes()); err != nil {
			return nil, err
		}
	}
	unit, err := os.ReadFile("deploy/systemd/earshot.service")
	if err != nil {
		return nil, err
	}
	unit = bytes.ReplaceAll(unit, []byte("/usr/local/bin/"), []byte("/usr/bin/"))
	if err := add(file{path: serviceFile, system: true}, unit); err != nil {
		return nil, err
	}
	return list, add(file{path: sampleFile, system: true, config: true}, []byte(sample))
}

func (r release) flags() string { return "-s -w -X main.version=" + r.tag }

// build makes the binaries of a platform.
func (r release) build(ctx context.Context, p platform, work string) ([]file, error) {
	began := time.Now()
	env := []string{"CGO_ENABLED=0", "GOOS=" + p.os, "GOARCH=" + p.arch, "GOFLAGS=-trimpath"}
	programs, suffix := []string{"earshot", "earshot-store"}, ""
	if p.os == "windows" {
		programs, suffix = programs[:1], ".exe"
	}
	var list []file
	for _, name := range programs {
		if r.built != "" {
			list = append(list, file{path: bin + name, source: filepath.Join(r.built, name), mode: 0o755})
			continue
		}
		path := filepath.Join(work, p.os+"-"+p.arch, name+suffix)
		if _, err := command(ctx, env, "go", "build", "-ldflags", r.flags(), "-o", path, "./cmd/"+name); err != nil {
			return nil, err
		}
		list = append(list, file{path: bin + name + suffix, source: path, mode: 0o755})
	}
	fmt.Printf("%-14s built in %s on %d cores\n", p, time.Since(began).Round(time.Second), runtime.NumCPU())
	return list, nil
}
