package loopback

import "testing"

func TestIs(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:80": true, "127.0.0.1": true, "127.8.9.1:0": true, "::1": true, "[::1]": true, "[::1]:80": true, "::ffff:127.0.0.1": true,
		"": false, ":80": false, "0.0.0.0:80": false, "[::]:80": false, "10.0.0.1": false, "localhost.example.org": false, "127.0.0.1.example.org:80": false, "fe80::1%lo": false,
	} {
		if got := Is(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}
