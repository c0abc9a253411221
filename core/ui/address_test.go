package ui

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// TestEveryConversationHasAPage asks the routes which conversation each address means.
func TestEveryConversationHasAPage(t *testing.T) {
	for _, id := range []string{"s", "a b", "a/b", "a//b", "//", "/", "a/", "..", "../../etc", "a/../b", "a/.", "a?b=c", "a#b", "a%2Fb", "ä", `a\b`} {
		got := ""
		mux := http.NewServeMux()
		mux.HandleFunc("GET /session/{id...}", func(_ http.ResponseWriter, r *http.Request) { got = conversationOf(r) })
		mux.HandleFunc("GET /live/{id...}", func(_ http.ResponseWriter, r *http.Request) { got = conversationOf(r) })
		base, _ := url.Parse("http://localhost/slow")
		for _, address := range []string{conversation(id), follow(id)} {
			u, err := base.Parse(address) // as a browser resolves it
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			if mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, u.String(), nil)); w.Code != http.StatusOK || got != id {
				t.Errorf("%q: %s is %q, status %d", id, u, got, w.Code)
			}
		}
	}
}
