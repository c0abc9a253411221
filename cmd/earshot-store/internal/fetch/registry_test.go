package fetch

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/cmd/earshot-store/internal/release"
)

// serve is an npm registry on loopback that has one archive, below /npm, for holders of the token.
func serve(t *testing.T, archive *string, integrity *string, token string) string {
	t.Helper()
	s := httptest.NewServer(nil)
	t.Cleanup(s.Close)
	mux := http.NewServeMux()
	allowed := func(h http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
				http.Error(w, "who?", http.StatusUnauthorized)
				return
			}
			h(w, r)
		}
	}
	mux.HandleFunc("GET /npm/@x%2Fy/1", allowed(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"dist": map[string]any{"integrity": *integrity, "tarball": s.URL + "/npm/y-1.tgz"}})
	}))
	mux.HandleFunc("GET /npm/y-1.tgz", allowed(func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, *archive) }))
	s.Config.Handler = mux
	return s.URL + "/npm/"
}

func env(values map[string]string) func(string) string {
	return func(k string) string { return values[k] }
}

// TestPinAtFirstUse holds a platform that engine.lock has no pin for to its first archive.
func TestPinAtFirstUse(t *testing.T) {
	archive, sum := tarball(t, map[string]string{"package/libchdb.so": "ELF"})
	other, otherSum := tarball(t, map[string]string{"package/libchdb.so": "another"})
	url := serve(t, &archive, &sum, "")
	npmrc := filepath.Join(t.TempDir(), "npmrc")
	if err := os.WriteFile(npmrc, []byte("registry="+url+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := configured(env(map[string]string{"npm_config_userconfig": npmrc}), "@x/y")
	if err != nil {
		t.Fatal(err)
	}
	rel := release.Release{Platform: "plan9/386", Package: "@x/y", Version: "1", Integrity: "unpinned"}
	cache, data := t.TempDir(), filepath.Join(t.TempDir(), "store")
	var out strings.Builder
	fetcher := func(to string) *Fetcher {
		return &Fetcher{Release: rel, Dir: filepath.Join(cache, to), Data: data, Out: &out, pack: newClient(r, &out)}
	}
	if _, err := fetcher("a").Library(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "y-1.tgz, 0 MB, once") || !strings.Contains(text, sum+" by the registry, and pinned") {
		t.Errorf("it announced %q", text)
	}
	// The registry has another archive now, with an integrity of its own.
	archive, sum = other, otherSum
	if _, err := fetcher("b").Library(t.Context()); err == nil || !strings.Contains(err.Error(), "pinned is") {
		t.Errorf("another archive was taken: %v", err)
	}
	if _, err := fetcher("a").Library(t.Context()); err != nil {
		t.Errorf("the library of the pin: %v", err)
	}
	rel.Version = "2" // has no pin yet
	if want, err := fetcher("c").pin(); err != nil || want != "" {
		t.Errorf("the pin of another version holds: %q, %v", want, err)
	}
}

// TestRegistryThatLies announces an integrity that its archive does not have.
func TestRegistryThatLies(t *testing.T) {
	archive, _ := tarball(t, map[string]string{"package/libchdb.so": "ELF"})
	sum := "sha512-other"
	r := registry{url: strings.TrimSuffix(serve(t, &archive, &sum, ""), "/")}
	_, err := r.pack(t.Context(), io.Discard, release.Release{Package: "@x/y", Version: "1"}, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "nothing was installed") {
		t.Error(err)
	}
}

// TestConfiguredRegistry reads npm's configuration.
func TestConfiguredRegistry(t *testing.T) {
	archive, sum := tarball(t, map[string]string{"package/libchdb.so": "ELF"})
	url := serve(t, &archive, &sum, "s3cret")
	host := strings.TrimPrefix(url, "http:")
	cases := []struct {
		name, npmrc string
		env         map[string]string
		want, token string
	}{
		{"none", "", nil, defaultRegistry, ""},
		{"file", "; of the company\nregistry = \"" + url + "\"\n" + host + ":_authToken=${SOME_TOKEN}\n", map[string]string{"SOME_TOKEN": "s3cret"}, url, "s3cret"},
		{"environment before file", "registry=http://127.0.0.1:1/\n", map[string]string{"NPM_CONFIG_REGISTRY": url}, url, ""},
		{"scope before environment", "@x:registry=" + url + "\n" + host + ":_authToken=s3cret\n", map[string]string{"npm_config_registry": "http://127.0.0.1:1/"}, url, "s3cret"},
		{"token of another host", "registry=" + url + "\n//registry.example/:_authToken=s3cret\n", nil, url, ""},
		{"token of a host with the same beginning", "registry=" + url + "\n" + strings.TrimSuffix(host, "/npm/") + "1/:_authToken=s3cret\n", nil, url, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, ".npmrc"), []byte(c.npmrc), 0o600); err != nil {
				t.Fatal(err)
			}
			values := map[string]string{"HOME": home}
			for k, v := range c.env {
				values[k] = v
			}
			r, err := configured(env(values), "@x/y")
			if err != nil {
				t.Fatal(err)
			}
			if r.url != strings.TrimSuffix(c.want, "/") || r.token != c.token {
				t.Errorf("%+v", r)
			}
			if c.token == "" {
				return
			}
			if _, err := r.pack(t.Context(), io.Discard, release.Release{Package: "@x/y", Version: "1"}, t.TempDir()); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := configured(env(map[string]string{"npm_config_registry": "ftp://x/"}), "@x/y"); err == nil {
		t.Error("a registry that is no web address")
	}
}

// TestTokenStaysWithItsHost redirects the archive to another host, as registries do.
func TestTokenStaysWithItsHost(t *testing.T) {
	var leaked string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked += r.Header.Get("Authorization") }))
	defer other.Close()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"dist":{"integrity":"sha512-x","tarball":%q}}`, other.URL+"/y.tgz")
	}))
	defer own.Close()
	_, err := registry{own.URL, "s3cret"}.pack(t.Context(), io.Discard, release.Release{Package: "@x/y", Version: "1"}, t.TempDir())
	if err == nil || leaked != "" {
		t.Errorf("%v; the other host got %q", err, leaked)
	}
}
