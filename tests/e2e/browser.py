"""A headless Chromium that has the guard's page open, driven by Debian's selenium."""
import os
import shutil

MISSING = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys  # noqa: F401, for the tests
except ImportError:
    MISSING.append("python3-selenium")

REASON = f"not installed: {', '.join(MISSING)}: deploy/install-packages tests"


def is_there():
    return not MISSING


class Browser:
    def __init__(self):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--disable-gpu", "--disable-dev-shm-usage",
                         "--force-color-profile=srgb", "--hide-scrollbars", "--lang=en"):
            options.add_argument(argument)
        if os.getuid() == 0:
            options.add_argument("--no-sandbox")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(
            shutil.which("chromedriver"), log_path=os.devnull))

    def quit(self):
        self.driver.quit()

    def _tell(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def look(self, width=1240, height=900, scheme="light"):
        """As large a window as that, for a person who likes it light or dark."""
        self._tell("Emulation.setDeviceMetricsOverride", width=width, height=height,
                   deviceScaleFactor=1, mobile=width < 600)
        self._tell("Emulation.setEmulatedMedia",
                   features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, guard):
        self.driver.get(f"http://127.0.0.1:{guard.control_port}/")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self, selector):
        """What a person reads there; "" where nothing is shown."""
        return self.run("const found = document.querySelector(arguments[0]);"
                        "return found && found.checkVisibility() ? found.innerText : ''", selector)

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def focused(self):
        return self.driver.switch_to.active_element

    def complaints(self):
        """What the browser's console has of errors and of what the page's policy forbade."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE"]

    def picture(self, path, height=None):
        """The whole page, or its upper part."""
        size = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        self.look(size[0], height or size[1], self.run(
            "return matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'"))
        self.driver.save_screenshot(str(path))
