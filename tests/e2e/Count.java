// A program of Java, for the tests: it counts.
public class Count {
  public static void main(String[] arguments) throws Exception {
    for (long count = 0;; ++count) {
      System.out.println(count);
      Thread.sleep(50);
    }
  }
}
