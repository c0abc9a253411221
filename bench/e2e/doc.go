// Package e2e has the tests of the whole product through its real parts: the
// earshot and earshot-store executables, decoder processes, the ClickHouse
// engine, files and sockets. It has no code of its own.
package e2e
