//go:build !unix

package host

func besideGRPC(string) bool { return false }
