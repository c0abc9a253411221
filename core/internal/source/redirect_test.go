package source

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// Configured headers do not follow a redirect to another host.
func TestRedirect(t *testing.T) {
	var got http.Header
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer there.Close()
	var here *httptest.Server
	here = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, there.URL, http.StatusTemporaryRedirect)
		case "/near":
			http.Redirect(w, r, here.URL+"/end", http.StatusTemporaryRedirect)
		default:
			got = r.Header
		}
	}))
	defer here.Close()
	for path, want := range map[string]string{"/away": "", "/near": "secret"} {
		req, err := http.NewRequest(http.MethodGet, here.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", "secret")
		req.Header.Set("Accept", "text/event-stream")
		resp, err := (&http.Client{CheckRedirect: Redirect}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got.Get("X-Api-Key") != want || got.Get("Accept") != "text/event-stream" {
			t.Errorf("%s: %v", path, got)
		}
	}
}
