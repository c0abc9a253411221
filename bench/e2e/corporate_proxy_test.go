package e2e

import (
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestRunCommandBehindAProxy: where a provider is reached through the proxy of the environment alone, a command is answered and
// recorded as without Earshot, also if it trusts an authority of that proxy that the system does not know.
func TestRunCommandBehindAProxy(t *testing.T) {
	h := newHome(t)
	provider := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"text","text":"Aye, trim it."}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":5}}`)
	}))
	t.Cleanup(provider.Close)
	var tunnels atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to, err := net.Dial("tcp", provider.Listener.Addr().String())
		if err != nil || r.Method != http.MethodConnect || r.Host != "example.com:443" {
			http.Error(w, "not here", http.StatusBadGateway)
			return
		}
		tunnels.Add(1)
		client, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, client); _ = to.Close() }()
		_, _ = io.Copy(client, to)
		_ = client.Close()
	}))
	t.Cleanup(proxy.Close)
	h.write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: provider.Certificate().Raw})))
	self, err := os.Executable()
	h.must(err)
	env := append(os.Environ(), "HOME="+h.dir, "XDG_DATA_HOME="+h.path("share"), "XDG_CONFIG_HOME="+h.path("config"), "CLAUDE_CONFIG_DIR=", "CODEX_HOME=", "EARSHOT_CONFIG=",
		"ANTHROPIC_BASE_URL=https://example.com", "HTTPS_PROXY="+proxy.URL)
	if cache, err := os.UserCacheDir(); err == nil {
		env = append(env, "XDG_CACHE_HOME="+cache) // the engine
	}
	for i, authority := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"} {
		prompt := "Trim the sail for " + authority
		earshot := func(args ...string) string {
			t.Helper()
			c := exec.Command(filepath.Join(bin, "earshot"), args...)
			c.Dir, c.Env = h.dir, append(env[:len(env):len(env)], authority+"="+h.path("ca.pem"), promptVariable+"="+prompt)
			out, err := c.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %v\n%s", args, err, out)
			}
			return string(out)
		}
		earshot("run", "--", self, "-test.run", "^TestPost$")
		if out := earshot("sessions", "-o", "json"); !strings.Contains(out, prompt) || tunnels.Load() != int64(i+1) {
			t.Errorf("%d tunnels, sessions:\n%s", tunnels.Load(), out)
		}
	}
}
