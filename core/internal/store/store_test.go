package store

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAnotherProcessHasThePort: the file of a store that was killed names a port on which another
// store answers. It is not taken for the one that wrote the file.
func TestAnotherProcessHasThePort(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Earshot-Store", "another")
		_, _ = w.Write([]byte("Ok.\n"))
	}))
	defer other.Close()
	dir := t.TempDir()
	for nonce, want := range map[string]bool{"mine": false, "another": true} {
		text := fmt.Sprintf(`{"addr":%q,"pid":1,"version":"26","nonce":%q}`, strings.TrimPrefix(other.URL, "http://"), nonce)
		if err := os.WriteFile(readyFile(dir), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, got := running(t.Context(), dir); got != want {
			t.Errorf("the file of %s: running is %t", nonce, got)
		}
	}
}
