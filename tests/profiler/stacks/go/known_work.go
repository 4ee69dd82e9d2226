// The work that both programs do. A test knows what their profiles must have.
package main

import (
	"sync"
	"time"
)

var dropped []byte

// Makes objects of 4 KiB, and keeps none.
//
//go:noinline
func drop(objects int) {
	for i := 0; i < objects; i++ {
		dropped = make([]byte, 4096)
	}
	dropped = nil
}

// Waits 200 ms for a channel.
//
//go:noinline
func wait() {
	wake := make(chan bool)
	go func() {
		time.Sleep(200 * time.Millisecond)
		wake <- true
	}()
	<-wake
}

// Another goroutine waits 100 ms for a lock.
//
//go:noinline
func contend() {
	var lock sync.Mutex
	lock.Lock()
	done := make(chan bool)
	go func() {
		lock.Lock()
		lock.Unlock()
		close(done)
	}()
	time.Sleep(100 * time.Millisecond)
	lock.Unlock()
	<-done
}

// Reports that it has started, and waits for the channel.
//
//go:noinline
func park(started *sync.WaitGroup, end chan bool) {
	started.Done()
	<-end
}
