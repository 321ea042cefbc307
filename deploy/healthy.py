"""`python -m deploy.healthy` ends with 0 if the app on this machine has loaded its model, else with 1."""

import http.client
import os
import sys


def healthy(port: int) -> bool:
    """Whether /readyz answers with 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=4)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(not healthy(int(os.environ.get("STREAMLIT_SERVER_PORT", "8501"))))
