package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/release"
)

// Sizes of an archive: the usual one, which is announced, and one that no archive has.
const (
	usualSize   = "about 180 MB"
	longestSize = 1 << 30
)

// silence is how long a registry may send nothing.
const silence = time.Minute

// newPacker is npm where it is installed, and our own client elsewhere.
func newPacker(out io.Writer, env func(string) string) packer {
	if npm, err := exec.LookPath("npm"); err == nil {
		return func(ctx context.Context, rel release.Release, dir string) (string, error) {
			return npmPack(ctx, npm, out, rel, dir)
		}
	}
	return func(ctx context.Context, rel release.Release, dir string) (string, error) {
		r, err := configured(env, rel.Package)
		if err != nil {
			return "", err
		}
		return newClient(r, out)(ctx, rel, dir)
	}
}

// newClient is our own client of a registry.
func newClient(r registry, out io.Writer) packer {
	return func(ctx context.Context, rel release.Release, dir string) (string, error) {
		return r.pack(ctx, out, rel, dir)
	}
}

func npmPack(ctx context.Context, npm string, out io.Writer, rel release.Release, dir string) (string, error) {
	fmt.Fprintf(out, "Fetching the ClickHouse engine with npm: %s, %s, once\n", rel.Spec(), usualSize)
	cmd := exec.CommandContext(ctx, npm, "pack", rel.Spec(), "--loglevel=error", "--ignore-scripts", "--pack-destination", dir)
	cmd.Dir = dir
	cmd.WaitDelay = 5 * time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("engine: npm pack %s: %w: %s", rel.Spec(), err, bytes.TrimSpace(stderr.Bytes()))
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("engine: npm pack %s left %d archives", rel.Spec(), len(found))
	}
	return found[0], nil
}

// registry is an npm registry, without a slash at its end, and the token of requests to it.
type registry struct{ url, token string }

// defaultRegistry is npm's own.
const defaultRegistry = "https://registry.npmjs.org"

// configured reads the registry of a package from npm's configuration: the environment, then the
// user's .npmrc, then the global one that the environment names. That of its scope goes first.
func configured(env func(string) string, pkg string) (registry, error) {
	var files []string
	if f := either(env, "npm_config_userconfig"); f != "" {
		files = append(files, f)
	} else if home := env("HOME"); home != "" {
		files = append(files, filepath.Join(home, ".npmrc"))
	}
	if f := either(env, "npm_config_globalconfig"); f != "" {
		files = append(files, f)
	}
	values := make(map[string]string)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return registry{}, fmt.Errorf("engine: npm's configuration: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
			if key = strings.TrimSpace(key); ok && !strings.HasPrefix(key, "#") && !strings.HasPrefix(key, ";") && values[key] == "" {
				values[key] = expand(strings.Trim(strings.TrimSpace(value), `"'`), env)
			}
		}
	}
	scope, _, _ := strings.Cut(pkg, "/")
	address := defaultRegistry
	for _, v := range []string{values[scope+":registry"], either(env, "npm_config_registry"), values["registry"]} {
		if v != "" {
			address = v
			break
		}
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return registry{}, fmt.Errorf("engine: npm's configuration names the registry %q, which is no web address", address)
	}
	r := registry{url: strings.TrimSuffix(address, "/")}
	for key, v := range values { // the token of the address, or of a folder above it
		at, ok := strings.CutSuffix(key, ":_authToken")
		if ok && strings.HasPrefix("//"+u.Host+strings.TrimSuffix(u.Path, "/")+"/", strings.TrimSuffix(at, "/")+"/") {
			r.token = v
		}
	}
	return r, nil
}

// either is a variable in npm's two spellings.
func either(env func(string) string, name string) string {
	if v := env(name); v != "" {
		return v
	}
	return env(strings.ToUpper(name))
}

var variable = regexp.MustCompile(`\$\{(\w+)\}`)

// expand replaces ${NAME}, and nothing else, as npm does.
func expand(text string, env func(string) string) string {
	return variable.ReplaceAllStringFunc(text, func(v string) string { return env(v[2 : len(v)-1]) })
}

// pack does the work of npm pack, for one package.
func (r registry) pack(ctx context.Context, out io.Writer, rel release.Release, dir string) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	body, _, err := r.get(ctx, r.url+"/"+strings.ReplaceAll(rel.Package, "/", "%2f")+"/"+rel.Version)
	if err != nil {
		return "", err
	}
	var about struct {
		Dist struct{ Integrity, Tarball string }
	}
	err = json.NewDecoder(io.LimitReader(body, 1<<20)).Decode(&about)
	body.Close()
	if err != nil {
		return "", fmt.Errorf("engine: the registry's answer for %s: %w", rel.Spec(), err)
	}
	body, size, err := r.get(ctx, about.Dist.Tarball)
	if err != nil {
		return "", err
	}
	defer body.Close()
	announced := usualSize
	if size > 0 {
		announced = fmt.Sprintf("%d MB", size/1e6)
	}
	fmt.Fprintf(out, "Fetching the ClickHouse engine: %s, %s, once\n", about.Dist.Tarball, announced)
	path := filepath.Join(dir, "engine.tgz")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return "", fmt.Errorf("engine: write archive: %w", err)
	}
	d := &download{body: body, out: out, size: size, quiet: time.AfterFunc(silence, func() {
		cancel(fmt.Errorf("the registry sent nothing for %s", silence))
	})}
	n, err := io.Copy(f, io.LimitReader(d, longestSize+1))
	d.quiet.Stop()
	d.end()
	switch err := errors.Join(err, f.Close()); {
	case err != nil:
		return "", fmt.Errorf("engine: fetch %s: %w", about.Dist.Tarball, errors.Join(context.Cause(ctx), err))
	case n > longestSize:
		return "", fmt.Errorf("engine: %s is longer than %d MiB: nothing was installed", about.Dist.Tarball, longestSize>>20)
	}
	got, err := integrity(path)
	if err != nil {
		return "", err
	}
	if got != about.Dist.Integrity {
		return "", fmt.Errorf("engine: %s has integrity %s, the registry announced %s: nothing was installed", rel.Spec(), got, about.Dist.Integrity)
	}
	return path, nil
}

// get returns the body of an answer, and its size, or -1.
func (r registry) get(ctx context.Context, address string) (io.ReadCloser, int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("engine: %w", err)
	}
	if own, err := url.Parse(r.url); r.token != "" && err == nil && own.Host == req.URL.Host && own.Scheme == req.URL.Scheme {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	client := http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, ResponseHeaderTimeout: silence, TLSHandshakeTimeout: silence, DisableKeepAlives: true, ForceAttemptHTTP2: true,
	}}
	resp, err := client.Do(req)
	if err != nil {
		return nil, 0, fmt.Errorf("engine: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, 0, fmt.Errorf("engine: %s: %s", address, resp.Status)
	}
	return resp.Body, resp.ContentLength, nil
}

// download is the body of an archive, which is watched and shown on a terminal.
type download struct {
	body        io.Reader
	out         io.Writer
	size, bytes int64
	quiet       *time.Timer
	shown       time.Time
}

func (d *download) Read(b []byte) (int, error) {
	n, err := d.body.Read(b)
	d.bytes += int64(n)
	d.quiet.Reset(silence)
	if time.Since(d.shown) > 200*time.Millisecond && d.terminal() {
		d.shown = time.Now()
		fmt.Fprintf(d.out, "\r\x1b[K%d of %d MB", d.bytes/1e6, d.size/1e6)
	}
	return n, err
}

func (d *download) end() {
	if d.terminal() && !d.shown.IsZero() {
		fmt.Fprint(d.out, "\r\x1b[K")
	}
}

func (d *download) terminal() bool {
	f, ok := d.out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
